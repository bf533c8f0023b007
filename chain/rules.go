package chain

import "slices"

// A Rule is something that every chain must keep to.
type Rule struct {
	ID  string // like "no-timeout"
	Why string // one sentence
}

const (
	unknownService    = "unknown-service"
	duplicateService  = "duplicate-service"
	cycle             = "cycle"
	unreachable       = "unreachable"
	noTimeout         = "no-timeout"
	calleeOutlives    = "callee-outlives-caller"
	attemptsDoNotFit  = "attempts-do-not-fit"
	maxWaitBeyond     = "max-wait-beyond-deadline"
	capBeyondTotal    = "cap-beyond-total"
	capNeverReached   = "cap-never-reached"
	boundNearP99      = "bound-near-p99"
	boundFarAboveP99  = "bound-far-above-p99"
	noJitter          = "no-jitter"
	noBudget          = "no-budget"
	retryNotSafe      = "retry-not-safe"
	retriesMultiply   = "retries-multiply"
	leaseTooShort     = "lease-shorter-than-limit"
	retentionTooShort = "retention-shorter-than-retries"
)

var rules = []Rule{
	{unknownService, "A call leads to a service that the chain does not list, so nothing below it can be judged."},
	{duplicateService, "Two services bear one name, and only the first can be meant by who calls it."},
	{cycle, "A request that can come back to a service it has passed holds what it waits for, and its retries have no end."},
	{unreachable, "A service that calls nobody and that nobody calls is a leftover, or the name in a call is not its name."},
	{noTimeout, "A call that nothing ends holds its caller's goroutine, connection and request for as long as the service called hangs."},
	{calleeOutlives, "Work that goes on after the caller has given up is done for nobody, and a caller that tries again has it done twice at once."},
	{attemptsDoNotFit, "While the service hangs each attempt takes all of its bound, and the call is over before the last one has had its time."},
	{maxWaitBeyond, "A wait that is as long as the whole call is never waited for, so the limit on it decides nothing."},
	{capBeyondTotal, "A wait that is as long as the whole call is never waited for, so the cap on the backoff caps nothing."},
	{capNeverReached, "The attempts are over before the backoff has grown to its cap, so the waits are shorter than the cap makes believe."},
	{boundNearP99, "One answer in a hundred takes as long as the p99 on a good day, so a bound below twice of it turns the first slow minute into failures and retries."},
	{boundFarAboveP99, "An answer that takes ten times the p99 is not coming, and until the bound it holds the caller's time and connection."},
	{noJitter, "Callers that failed together come back together, at the same moment each time."},
	{noBudget, "While the service is down every call becomes as many as it has attempts, which keeps the service down."},
	{retryNotSafe, "A first attempt that was processed and whose answer was lost is processed a second time."},
	{retriesMultiply, "Each layer repeats the repeats of the one above, so that the last service gets the product of all attempts when it can bear it least."},
	{leaseTooShort, "While the first request still works on a key another may take the key over, and both do the work."},
	{retentionTooShort, "A retry that comes after its key was forgotten is processed as if it were new."},
}

// Rules returns all rules, in the order in which [Check] reports what breaks them at one place.
func Rules() []Rule { return slices.Clone(rules) }

// number returns the place of a rule among all.
func number(id string) int {
	return slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
}
