package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestAvoidance passes deaths to avoidance, and compares which task managers are avoided until
// when. Times are in minutes.
func TestAvoidance(t *testing.T) {
	for name, c := range map[string]struct {
		deaths string // "MINUTE:JOB@TASKMANAGER …"
		at     int    // minute at which the result is read
		want   string // "TASKMANAGER until MINUTE after DEATHS, …"
	}{
		"none":                      {"", 0, ""},
		"two are too few":           {"0:j@a 1:k@a", 1, ""},
		"three":                     {"0:j@a 1:k@a 2:l@a", 2, "a until 7 after 3"},
		"three of one job":          {"0:j@a 1:j@a 2:j@a", 2, "a until 7 after 3"},
		"at the end of the time":    {"0:j@a 1:k@a 2:l@a", 7, ""},
		"just before the end":       {"0:j@a 1:k@a 2:l@a", 6, "a until 7 after 3"},
		"just within the window":    {"0:j@a 1:k@a 9:l@a", 9, "a until 14 after 3"},
		"not within one window":     {"0:j@a 1:k@a 10:l@a", 10, ""},
		"a fourth extends the time": {"0:j@a 0:k@a 0:l@a 4:m@a", 4, "a until 9 after 4"},
		"again, for twice as long":  {"0:j@a 0:k@a 0:l@a 6:m@a", 6, "a until 16 after 4"},
		"a third time":              {"0:j@a 0:k@a 0:l@a 6:m@a 17:n@a 17:o@a 17:p@a", 17, "a until 37 after 3"},
		"never longer than an hour": {"0:a@a 0:b@a 0:c@a 6:d@a 17:e@a 17:f@a 17:g@a 38:h@a 38:i@a 38:j@a 79:k@a 79:l@a 79:m@a", 79, "a until 139 after 3"},
		"after the longest time, and a while without deaths": {"0:a@a 0:b@a 0:c@a 6:d@a 17:e@a 17:f@a 17:g@a 38:h@a 38:i@a 38:j@a 79:k@a 79:l@a 79:m@a 140:n@a 140:o@a 140:p@a 240:q@a 240:r@a 240:s@a", 240, "a until 280 after 3"},
		"a while without deaths":                             {"0:j@a 0:k@a 0:l@a 6:m@a 36:n@a 36:o@a 36:p@a", 36, "a until 46 after 3"},
		"a long while without deaths":                        {"0:j@a 0:k@a 0:l@a 6:m@a 56:n@a 56:o@a 56:p@a", 56, "a until 61 after 3"},
		"two task managers":                                  {"0:j@a 0:k@a 0:l@a 1:m@b 1:n@b 1:o@b", 1, "a until 5 after 3, b until 6 after 3"},
		"the job is to blame":                                {"0:j@a 0:j@b 1:j@a 1:j@b 2:j@a 2:j@b", 2, ""},
		"one job of several is to blame":                     {"0:j@b 0:j@a 0:k@a 0:l@a 0:m@a", 0, "a until 5 after 3"},
		"the others are too few":                             {"0:j@b 0:j@a 0:k@a 0:l@a", 0, ""},
		"to blame only later":                                {"0:j@a 0:k@a 0:l@a 1:l@b", 1, ""},
		"to blame, but enough are left":                      {"0:j@a 0:k@a 0:l@a 0:m@a 1:m@b", 1, "a until 5 after 4"},
		"to blame, but outside a window":                     {"0:j@b 9:k@a 9:l@a 10:j@a", 10, "a until 15 after 3"},
		"to blame only after the time":                       {"0:j@a 0:k@a 0:l@a 6:l@b 7:m@a 7:n@a 7:o@a", 7, "a until 17 after 5"},
		"late evidence changes nothing":                      {"0:j@a 0:k@a 9:l@a 13:l@b", 13, "a until 14 after 3"},
		"three jobs that die on their own":                   {"0:j@a 0:k@b 0:l@c", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var a avoidance
			for _, text := range strings.Fields(c.deaths) {
				var minute int
				when, rest, _ := strings.Cut(text, ":")
				_, err := fmt.Sscan(when, &minute)
				require.NoError(t, err)
				job, taskManager, _ := strings.Cut(rest, "@")
				a.died(death{at: time.Duration(minute) * time.Minute, job: wire.JobID(job), taskManager: taskManager})
			}
			var got []string
			for _, id := range []string{"a", "b", "c"} {
				if m, ok := a.at(id, time.Duration(c.at)*time.Minute); ok {
					got = append(got, fmt.Sprintf("%s until %g after %d", id, m.until.Minutes(), m.died))
				}
			}
			require.Equal(t, c.want, strings.Join(got, ", "))
		})
	}
}

// reference determines which task managers are avoided in the simplest way: it keeps all deaths,
// and looks at every pair of them.
type reference struct {
	deaths []death
	times  map[string]int
	until  map[string]time.Duration
}

func newReference() reference {
	return reference{times: make(map[string]int), until: make(map[string]time.Duration)}
}

// counts returns how many of the deaths within the window before now count against a task
// manager.
func (r *reference) counts(deaths []death, id string, now time.Duration) (n int) {
	for _, d := range deaths {
		if d.taskManager != id || now-d.at >= avoidWindow {
			continue
		}
		elsewhere := false
		for _, o := range deaths {
			elsewhere = elsewhere || o.job == d.job && o.taskManager != id && now-o.at < avoidWindow
		}
		if !elsewhere {
			n++
		}
	}
	return n
}

func (r *reference) died(d death) {
	before := r.deaths
	r.deaths = append(r.deaths[:len(r.deaths):len(r.deaths)], d)
	for id, until := range r.until {
		for ; r.times[id] > 0 && d.at-until >= avoidForget; until += avoidForget {
			r.times[id]--
		}
		r.until[id] = until
	}
	for id, until := range r.until {
		if until > d.at && r.counts(before, id, d.at) >= avoidDeaths && r.counts(r.deaths, id, d.at) < avoidDeaths {
			r.times[id] = 0
			delete(r.until, id)
		}
	}
	if r.counts(r.deaths, d.taskManager, d.at) < avoidDeaths {
		return
	}
	if r.until[d.taskManager] <= d.at {
		r.times[d.taskManager] = min(r.times[d.taskManager]+1, 5) // 5, 10, 20, 40, 60 minutes
	}
	period := avoidFirst
	for range r.times[d.taskManager] - 1 {
		period = min(2*period, avoidMost)
	}
	r.until[d.taskManager] = d.at + period
}

// TestAvoidanceIsTheReference compares avoidance with reference after random deaths. No task
// manager may be avoided for longer than avoidMost, and what is kept must be bounded.
func TestAvoidanceIsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a avoidance
		r := reference{times: map[string]int{}, until: map[string]time.Duration{}}
		now := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "deaths") {
			now += time.Duration(rapid.SampledFrom([]int{0, 1, 10, 60, 300, 1500, 4000}).Draw(t, "seconds")) * time.Second
			d := death{
				at: now, job: wire.JobID(fmt.Sprint("j", rapid.IntRange(0, 9).Draw(t, "job"))),
				taskManager: fmt.Sprint("m", rapid.IntRange(0, 2).Draw(t, "task manager")),
			}
			a.died(d)
			r.died(d)
			for i := range 3 {
				id := fmt.Sprint("m", i)
				m, ok := a.at(id, now)
				require.Equal(t, r.until[id] > now, ok, "%s at %s", id, now)
				if ok {
					require.Equal(t, r.until[id], m.until)
					require.LessOrEqual(t, m.until, now+avoidMost)
				}
			}
		}
	})
}

// TestDeathsAreBounded requires that avoidance does not grow with the number of deaths or of task
// managers.
func TestDeathsAreBounded(t *testing.T) {
	var a avoidance
	for i := range 3 * maxDeaths {
		a.died(death{at: time.Duration(i) * time.Millisecond, job: wire.JobID(fmt.Sprint(i)), taskManager: fmt.Sprint(i / 3)})
	}
	require.Len(t, a.deaths, maxDeaths)
	require.Len(t, a.marks, maxDeaths)
	a.died(death{at: 2 * time.Hour, job: "last", taskManager: "last"})
	require.Len(t, a.deaths, 1)
	require.Empty(t, a.marks)
}
