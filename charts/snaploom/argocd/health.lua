-- How Argo CD shows a resource of snaploom.io. No library of Lua is used: Argo CD opens none.
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

local function told(found, otherwise)
  if found ~= nil and found.message ~= nil and found.message ~= "" then
    return found.message
  end
  if found ~= nil and found.reason ~= nil and found.reason ~= "" then
    return found.reason
  end
  return otherwise
end

local ready = condition("Ready")

if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = told(ready, "Being deleted") }
end

if obj.status == nil or ready == nil then
  return { status = "Progressing", message = "Waiting for the operator" }
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "Waiting for the operator to see the latest change" }
end

local annotations = obj.metadata.annotations
local run = obj.spec ~= nil and obj.spec.run or nil
if annotations ~= nil and annotations["snaploom.io/paused"] == "true" then
  return { status = "Suspended", message = "Paused by the annotation snaploom.io/paused" }
end
if run ~= nil and run.suspend == true then
  return { status = "Suspended", message = "Suspended by spec.run.suspend" }
end
if is_true(condition("Suspended")) then
  return { status = "Suspended", message = told(condition("Suspended"), "Suspended") }
end

local stalled = condition("Stalled")
if is_true(stalled) then
  return { status = "Degraded", message = told(stalled, "Stalled") }
end
if is_true(ready) then
  return { status = "Healthy", message = told(ready, "Ready") }
end
return { status = "Progressing", message = told(condition("Reconciling") or ready, "Reconciling") }
