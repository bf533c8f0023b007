package riprap

// Start is the instant that budgets count time from. Simulated time begins there too, so that a simulation with the
// same seed meets the same slots of a budget's window in every run.
var Start = processStart
