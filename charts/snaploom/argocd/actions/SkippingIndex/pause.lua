-- Stops everything but status, until it is resumed.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["snaploom.io/paused"] = "true"
return obj
