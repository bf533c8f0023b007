package chain

import "fmt"

// shape finds names that lead nowhere, and ways that lead back.
func (k *checker) shape() {
	misnamed := k.unknown()
	returns := map[[2]int]bool{} // calls that lead back, by caller and service called
	for _, e := range k.edges {
		if e.cycle == nil || returns[[2]int{e.from, e.to}] {
			continue
		}
		returns[[2]int{e.from, e.to}] = true
		way := path(append(e.cycle, e.To))
		text := fmt.Sprintf("%s calls %s, which a request has passed before: %s.", k.name(e.from), e.To, way)
		fix := fmt.Sprintf("Remove one of these calls, or hand the work to a queue there; %s is the one that leads back.", k.place(e))
		if e.from == e.to {
			text = fmt.Sprintf("%s calls itself.", e.To)
			fix = fmt.Sprintf("Remove this call of %s, or hand the work to a queue.", e.To)
		}
		k.atCall(e, cycle, "to", text, fix, Figure{"cycle", way})
	}
	named := map[string]int{}
	for i, s := range k.Services {
		named[s.Name]++
		n := k.nodes[i]
		switch {
		case n.duplicate:
			if named[s.Name] == 2 {
				k.atService(i, duplicateService, "", fmt.Sprintf("A service before this one has the name %q too.", s.Name),
					"Give one of them another name, or join what they call.", Figure{"name", s.Name})
			}
		// With a name that leads nowhere it may well be this service that is meant.
		case len(k.Services) > 1 && len(n.in) == 0 && len(n.out) == 0 && !misnamed:
			k.atService(i, unreachable, "", fmt.Sprintf("Nobody calls %s, and it calls nobody.", s.Name),
				fmt.Sprintf("Remove %s, or add the calls that lead to it.", s.Name), Figure{"name", s.Name})
		}
	}
}

// unknown finds services that are called and not listed, each once: to list it mends all calls of it.
func (k *checker) unknown() (found bool) {
	calls := map[string]int{}
	for _, e := range k.edges {
		if e.to < 0 {
			calls[e.To]++
		}
	}
	for _, e := range k.edges {
		if n := calls[e.To]; e.to < 0 && n > 0 {
			calls[e.To] = 0
			text := fmt.Sprintf("%s calls %q, and no service has that name.", k.name(e.from), e.To)
			if n > 1 {
				text = fmt.Sprintf("%s calls %q, as %s, and no service has that name.", k.name(e.from), e.To, others(n-1))
			}
			fix := fmt.Sprintf("Add a service %q, if only with its name, or correct the name.", e.To)
			if e.To == "" {
				fix = "Name the service that is called."
			}
			k.atCall(e, unknownService, "to", text, fix, Figure{"to", e.To})
		}
	}
	return len(calls) > 0
}

func others(n int) string {
	if n == 1 {
		return "does 1 other call"
	}
	return fmt.Sprintf("do %d other calls", n)
}
