-- Ends a pause. Only a value takes part in a patch, so the annotation stays.
obj.metadata.annotations["snaploom.io/paused"] = "false"
return obj
