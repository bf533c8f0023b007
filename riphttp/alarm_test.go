package riphttp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAlarmRingsAtTheTimeThatItWasSetToLast(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(a *alarm)
		want time.Duration // from the beginning; zero means never
	}{
		{"set once", func(a *alarm) { a.set(time.Now(), 5*time.Second) }, 5 * time.Second},
		{"put off", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			time.Sleep(2 * time.Second)
			a.set(time.Now(), 7*time.Second)
		}, 9 * time.Second},
		{"brought forward", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			time.Sleep(2 * time.Second)
			a.set(time.Now(), time.Second)
		}, 3 * time.Second},
		{"called off", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			a.off()
		}, 0},
		{"called off and set again before the time", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			a.off()
			a.set(time.Now(), 6*time.Second)
		}, 6 * time.Second},
		{"called off and set again after the time", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			a.off()
			time.Sleep(10 * time.Second)
			a.set(time.Now(), time.Second)
		}, 11 * time.Second},
		{"ended", func(a *alarm) {
			a.set(time.Now(), 5*time.Second)
			a.end()
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, rang := time.Now(), time.Duration(0)
				a := &alarm{cancel: context.CancelCauseFunc(func(cause error) {
					if cause != errStruck {
						t.Errorf("the cause is %v, want %v", cause, errStruck)
					}
					rang = time.Since(began)
				})}
				c.do(a)
				time.Sleep(time.Minute)
				synctest.Wait()
				if rang != c.want {
					t.Errorf("it rang after %v, want %v", rang, c.want)
				}
				if got := a.off(); got != (c.want > 0) {
					t.Errorf("off() = %v, want %v", got, c.want > 0)
				}
				a.end()
			})
		})
	}
}
