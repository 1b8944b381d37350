-- What can be done with an OutputDataset.
local annotations = obj.metadata.annotations
local paused = annotations ~= nil and annotations["snaploom.io/paused"] == "true"
local suspended = obj.spec.run ~= nil and obj.spec.run.suspend == true
return {
  run = { disabled = paused or suspended },
  pause = { disabled = paused },
  resume = { disabled = not paused },
}
