-- What can be done with an OutputDataset.
local annotations = obj.metadata.annotations
-- What pauses nothing: the operator has the same list.
local off = {
  [""] = true, ["0"] = true, ["false"] = true, ["False"] = true, ["FALSE"] = true,
  ["n"] = true, ["N"] = true, ["no"] = true, ["No"] = true, ["NO"] = true,
  ["off"] = true, ["Off"] = true, ["OFF"] = true,
}
local pause = annotations ~= nil and annotations["snaploom.io/paused"] or ""
local paused = not off[pause]
local suspended = obj.spec.run ~= nil and obj.spec.run.suspend == true
return {
  run = { disabled = paused or suspended },
  pause = { disabled = paused },
  resume = { disabled = not paused },
}
