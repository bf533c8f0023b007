package riprap

import (
	"math/big"
	"testing"
	"time"
)

// A model is what a Budget promises, in exact fractions, slowly and for one goroutine.
type model struct {
	ratio   *big.Rat // of a retry for a deposit
	size    *big.Rat // of the reserve
	slot    int64    // the length of a slot in nanoseconds
	sum     *big.Rat // deposited and not a whole retry yet
	reserve *big.Rat
	at      int64         // the instant for which reserve holds
	window  map[int64]int // retries by slot
}

func (m *model) advance(t int64) {
	if hours := big.NewRat(t-m.at, int64(time.Hour)); m.size.Sign() > 0 {
		m.fill(hours.Mul(hours, m.size))
	}
	m.at = t
	for number := range m.window {
		if number <= t/m.slot-slots {
			delete(m.window, number)
		}
	}
}

func (m *model) fill(n *big.Rat) {
	if m.reserve.Add(m.reserve, n); m.reserve.Cmp(m.size) > 0 {
		m.reserve.Set(m.size)
	}
}

func (m *model) deposit() {
	one := big.NewRat(1, 1)
	for m.sum.Add(m.sum, m.ratio); m.sum.Cmp(one) >= 0; m.sum.Sub(m.sum, one) {
		if m.reserve.Cmp(m.size) < 0 {
			m.fill(one)
		} else {
			m.window[m.at/m.slot]++
		}
	}
}

func (m *model) left() (n int) {
	for _, in := range m.window {
		n += in
	}
	return n + int(new(big.Int).Quo(m.reserve.Num(), m.reserve.Denom()).Int64())
}

// withdraw returns the slot that the retry came from, and fromReserve for the reserve.
func (m *model) withdraw() (from int64) {
	from = fromReserve
	for number, in := range m.window {
		if in > 0 && (from == fromReserve || number < from) {
			from = number
		}
	}
	if from == fromReserve {
		m.reserve.Sub(m.reserve, big.NewRat(1, 1))
	} else {
		m.window[from]--
	}
	return from
}

// deny begins the silence anew in which the reserve fills, unless it has hardly begun.
func (m *model) deny() {
	if m.reserve.Cmp(big.NewRat(1, 16)) > 0 {
		m.reserve.SetInt64(0)
	}
}

func (m *model) giveBack(from int64) {
	if from == fromReserve {
		m.fill(big.NewRat(1, 1))
	} else if from > m.at/m.slot-slots {
		m.window[from]++
	}
}

// FuzzBudget plays deposits, withdrawals, returns and time on chains of one to four budgets, beside the model.
func FuzzBudget(f *testing.F) {
	f.Add(uint8(1), uint16(51), uint8(4), uint8(0), []byte("DWWGWA\x10DDDDDDWWWWWWWWWWWWWW"))
	f.Add(uint8(2), uint16(256), uint8(0), uint8(1), []byte("DDDDA\xffWA\xffWA\xffWA\xffGGGA\xffWW"))
	f.Add(uint8(4), uint16(700), uint8(2), uint8(2), []byte("WWWWWWA\xf0DGA\xf1DGA\xf2DWGWGWDDDDDGG"))
	f.Add(uint8(3), uint16(1), uint8(1), uint8(3), []byte("DWA\x81DWA\x82DWA\x83DWA\x84DWGGGG"))
	f.Fuzz(func(t *testing.T, levels uint8, ratio uint16, reserve, window uint8, script []byte) {
		// Figures that a Budget keeps without rounding, so that the model need not round either.
		sizes := [...]int{-1, 1, 2, 3, 10, 100}
		windows := [...]time.Duration{10 * time.Millisecond, time.Second, 10 * time.Second, time.Hour, 1000 * time.Hour}
		now := processStart.Add(time.Hour)
		var b *Budget
		var chain []*model
		for i := range int(levels%4) + 1 {
			size := sizes[(int(reserve)+i)%len(sizes)]
			per := int64(ratio)%1024 + 1 + int64(i)*64
			b = &Budget{Ratio: float64(per) / 256, Reserve: size, Window: windows[(int(window)+i)%len(windows)], Parent: b}
			m := &model{
				ratio: big.NewRat(per, 256), size: big.NewRat(int64(max(size, 0)), 1), slot: int64(b.Window / slots),
				sum: new(big.Rat), reserve: new(big.Rat), window: make(map[int64]int),
			}
			m.reserve.Set(m.size)
			chain = append([]*model{m}, chain...)
		}
		type grant struct {
			hold hold
			from []int64
		}
		var grants []grant
		for i := 0; i < min(len(script), 500); i++ {
			for _, m := range chain {
				m.advance(instant(now))
			}
			switch script[i] {
			default:
				b.deposit(instant(now))
				for _, m := range chain {
					m.deposit()
				}
			case 'W':
				allowed := true
				for _, m := range chain {
					if allowed = m.left() > 0; !allowed {
						m.deny()
						break
					}
				}
				var g grant
				if got := b.withdraw(now, &g.hold); got != allowed {
					t.Fatalf("step %d: withdraw = %v, want %v", i, got, allowed)
				}
				if allowed {
					for _, m := range chain {
						g.from = append(g.from, m.withdraw())
					}
					grants = append(grants, g)
				}
			case 'G':
				if len(grants) == 0 {
					continue
				}
				g := grants[0]
				grants = grants[1:]
				b.giveBack(&g.hold)
				for level, m := range chain {
					m.giveBack(g.from[level])
				}
			case 'A':
				if i++; i < len(script) { // from nanoseconds to hours
					step := time.Duration(script[i]&0xf + 1)
					for range script[i] >> 4 {
						step *= 7
					}
					now = now.Add(step)
				}
				for _, m := range chain {
					m.advance(instant(now))
				}
			}
			level := b
			for n, m := range chain {
				if got, want := level.inReserve(instant(now))+level.inWindow(instant(now)), m.left(); got != want {
					t.Fatalf("step %d: level %d has %d retries left, want %d", i, n, got, want)
				}
				level = level.Parent
			}
		}
	})
}
