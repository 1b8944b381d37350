-- What can be done with a SkippingIndex.
local annotations = obj.metadata.annotations
local paused = annotations ~= nil and annotations["snaploom.io/paused"] == "true"
local suspended = obj.spec.run ~= nil and obj.spec.run.suspend == true
return {
  refresh = { disabled = paused or suspended },
  pause = { disabled = paused },
  resume = { disabled = not paused },
}
