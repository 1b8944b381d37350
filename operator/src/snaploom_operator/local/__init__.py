"""Jobs as processes of this machine, for `snaploom operator run --local`."""
