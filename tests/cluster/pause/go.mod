module snaploom.io/pause

go 1.24.0
