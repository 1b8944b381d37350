-- Asks for a run: each new value of the annotation is one.
local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["snaploom.io/run"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
