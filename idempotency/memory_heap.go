package idempotency

// An endHeap orders records by when their retention ends, the first one at the front. Entries whose record is gone stay
// until they come to the front, so that a record need not know its place.
type endHeap []endEntry

type endEntry struct {
	at     int64
	record *memoryRecord
}

func (h *endHeap) push(at int64, r *memoryRecord) {
	*h = append(*h, endEntry{at, r})
	list := *h
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if list[parent].at <= list[i].at {
			return
		}
		list[parent], list[i] = list[i], list[parent]
		i = parent
	}
}

// pop takes the first entry away. There must be one.
func (h *endHeap) pop() *memoryRecord {
	list := *h
	first, n := list[0].record, len(list)-1
	list[0], list[n] = list[n], endEntry{}
	list = list[:n]
	for i := 0; ; {
		least := 2*i + 1
		if least >= n {
			break
		}
		if least+1 < n && list[least+1].at < list[least].at {
			least++
		}
		if list[i].at <= list[least].at {
			break
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
	*h = list
	return first
}
