-- How Argo CD shows a resource of snaploom.io. No library of Lua is used: Argo CD opens few.
local function condition(type)
  if obj.status ~= nil and obj.status.conditions ~= nil then
    for i = 1, #obj.status.conditions do
      if obj.status.conditions[i].type == type then
        return obj.status.conditions[i]
      end
    end
  end
  return nil
end

local function is_true(found)
  return found ~= nil and found.status == "True"
end

local function shown(status, found, otherwise)
  local message = otherwise
  if found ~= nil and found.message ~= nil and found.message ~= "" then
    message = found.message
  end
  return { status = status, message = message }
end

local ready = condition("Ready")
local stalled = condition("Stalled")
local suspended = condition("Suspended")
local annotations = obj.metadata.annotations
-- What pauses nothing: the operator has the same list.
local off = {
  [""] = true, ["0"] = true, ["false"] = true, ["False"] = true, ["FALSE"] = true,
  ["n"] = true, ["N"] = true, ["no"] = true, ["No"] = true, ["NO"] = true,
  ["off"] = true, ["Off"] = true, ["OFF"] = true,
}
local pause = annotations ~= nil and annotations["snaploom.io/paused"] or ""

if obj.metadata.deletionTimestamp ~= nil then
  return shown("Progressing", ready, "Being deleted")
end
if ready == nil then
  return { status = "Progressing", message = "Waiting for the operator" }
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the operator to see the latest change" }
end
if not off[pause] then
  return shown("Suspended", suspended, "Paused by the annotation snaploom.io/paused")
end
if obj.spec.run ~= nil and obj.spec.run.suspend == true then
  return shown("Suspended", suspended, "Suspended by run.suspend")
end
if is_true(stalled) then
  return shown("Degraded", stalled, "Stalled")
end
if is_true(ready) then
  return shown("Healthy", ready, "Ready")
end
return shown("Progressing", ready, "Reconciling")
