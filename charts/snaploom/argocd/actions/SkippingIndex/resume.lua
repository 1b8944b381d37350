-- Ends a pause. An annotation taken away may leave an empty table, which Argo CD would not patch.
obj.metadata.annotations["snaploom.io/paused"] = "false"
return obj
