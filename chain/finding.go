package chain

// A Finding is something in a [Chain] that cannot work as it is written.
type Finding struct {
	// Rule is the ID of the [Rule] that is broken.
	Rule string

	// Service and To say where: at the call of Service to To, or at Service itself if To is empty and Call is negative.
	Service, To string

	// Call is the index of the call among those of Service, -1 if the finding is about the service itself.
	Call int

	// Field is the figure to look at, as riprap.yaml names it below the call or the service: "policy.timeout", "limit",
	// "to". It is empty if the finding is about the service as a whole. What mends the finding may be elsewhere: Fix says so.
	Field string

	Text string // what is wrong, with the figures, as one sentence
	Why  string // why that is wrong: the Rule's
	Fix  string // the change that mends it: which value to what

	// Figures are those that broke the rule, in the order in which Text speaks of them.
	Figures []Figure
}

// A Figure is a value that a rule looked at, as riprap.yaml writes it: "7s", "4", "none".
type Figure struct{ Name, Value string }

// A Rule is something that every chain must keep to.
type Rule struct {
	ID  string // like "no-timeout"
	Why string // one sentence
}

// Rules returns all rules, in the order in which [Check] reports what breaks them at one place.
func Rules() []Rule {
	return nil
}
