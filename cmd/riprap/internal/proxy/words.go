package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/riprap-go/riprap/idempotency"
)

// A vocabulary is all that a label may say. However many words clients or services think up, there are no more time series than
// these, and no memory of what was sent is kept with them.
type vocabulary struct {
	words []string // the last one stands for all that are not known
	index map[string]int
}

func newVocabulary(words ...string) *vocabulary {
	v := &vocabulary{words: words, index: make(map[string]int, len(words))}
	for i, word := range words {
		v.index[word] = i
	}
	return v
}

// find returns the number of a word.
func (v *vocabulary) find(word string) int {
	if i, ok := v.index[word]; ok {
		return i
	}
	return len(v.words) - 1
}

// own returns the vocabulary's own copy of a word, so that nobody else's memory is held. The empty word stays empty.
func (v *vocabulary) own(word string) string {
	if word == "" {
		return ""
	}
	return v.words[v.find(word)]
}

// counts returns a count for each word.
func (v *vocabulary) counts() []atomic.Uint64 { return make([]atomic.Uint64, len(v.words)) }

const (
	others = "other" // no word of ours, and what matches no route: a pattern begins with a method or a slash
	nobody = "none"  // no status: nothing was sent
)

var (
	methodWords  = newVocabulary(append(slices.Clone(methods[:]), "OTHER")...)
	reasonWords  = newVocabulary(append(slices.Clone(Reasons), others)...)
	failureWords = newVocabulary(Failures...)
	problemWords = newVocabulary(problemTypes()...)
	reachedWords = newVocabulary(string(ReachedNo), string(ReachedYes), string(ReachedUnknown))
	kindWords    = newVocabulary(kindsOfKeys()...)

	statusWords, statusIndex = statuses()
	outcomeWords             = slices.Concat(statusWords, Failures)
)

func problemTypes() []string {
	types := []string{"deadline"}
	for _, p := range []problem{
		busy, tunnel, loop, ambiguous, bodyTooLarge, bodyTooSlow, bodyBroken, unreachable, noAnswer, timedOut, unknown, unknownInTime,
	} {
		if !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	slices.Sort(types)
	return append(types, others)
}

func kindsOfKeys() []string {
	var words []string
	for kind := idempotency.Ran; kind <= idempotency.NotCommitted; kind++ {
		words = append(words, wordOf(kind))
	}
	return append(words, others)
}

// kindOf returns the number of a kind's word.
func kindOf(kind idempotency.Kind) int {
	if kind < idempotency.Ran || kind > idempotency.NotCommitted {
		return len(kindWords.words) - 1
	}
	return int(kind - idempotency.Ran)
}

func wordOf(kind idempotency.Kind) string { return strings.ReplaceAll(kind.String(), " ", "-") }

// statuses returns the words for statuses, and of each status the number of its word: those that have a name are a word each, the
// others are one by their first digit, which the usual expressions for classes match too.
func statuses() (words []string, index [1000]uint8) {
	words = []string{nobody}
	class := 0
	for status := 100; status < len(index); status++ {
		if status%100 == 0 {
			class = len(words)
			words = append(words, strconv.Itoa(status/100)+"xx")
		}
		index[status] = uint8(class)
		if http.StatusText(status) != "" {
			index[status] = uint8(len(words))
			words = append(words, strconv.Itoa(status))
		}
	}
	return words, index
}

// statusOf returns the number of a status's word.
func statusOf(status int) int {
	if status < 0 || status >= len(statusIndex) {
		return 0
	}
	return int(statusIndex[status])
}

// outcomeOf returns the number of the word for how an attempt ended.
func outcomeOf(a *Attempt) int {
	if a.Failure != "" {
		return len(statusWords) + failureWords.find(a.Failure)
	}
	return statusOf(a.Status)
}
