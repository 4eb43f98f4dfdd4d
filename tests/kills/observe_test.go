//go:build linux && !race

package kills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// view is a job as the job manager describes it.
type view struct {
	ID, State, Detail, From string
	Attempt, Restarts       int
	Lost                    []struct {
		Number      int
		Cause, From string
	}
	Failure *struct{ Kind, Message string }
	Workers []struct {
		TaskManager string `json:"task_manager"`
	}
	Progress *struct {
		Queues []struct{ Superstep int }
	}
}

// superstep returns the last superstep of the attempt, of all queues.
func (v *view) superstep() (most int) {
	if v.Progress == nil || v.State != "running" {
		return 0
	}
	for _, q := range v.Progress.Queues {
		most = max(most, q.Superstep)
	}
	return most
}

// ended reports whether the state is final.
func (v *view) ended() bool {
	return slices.Contains([]string{"finished", "failed", "cancelled"}, v.State)
}

// errNotFound says that a job is unknown.
var errNotFound = errors.New("there is no such job")

// ask gets a document of the REST API of the job manager.
func (c *cluster) ask(ctx context.Context, path string, document any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	token, err := os.ReadFile(filepath.Join(c.dir, "token"))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.web+"/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNotFound
	default:
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(document)
}

// observer asks for the state of a job again and again. While the job manager does not answer,
// the last state stays.
type observer struct {
	c      *cluster
	client *submission
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	last view
}

// observe begins to observe the job of a client, which must be the newest of the cluster. The
// caller must call stop.
func (c *cluster) observe(s *submission) *observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &observer{c: c, client: s, cancel: cancel, done: make(chan struct{})}
	go o.run(ctx)
	return o
}

// stop ends the observation.
func (o *observer) stop() {
	o.cancel()
	<-o.done
}

// job returns the last state that was observed.
func (o *observer) job() view {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

func (o *observer) run(ctx context.Context) {
	defer close(o.done)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, err := o.look(ctx); err == nil && now.ID != "" {
			o.saw(now)
		}
	}
}

// look asks for the state of the job.
func (o *observer) look(ctx context.Context) (now view, err error) {
	if id := o.job().ID; id != "" {
		err = o.c.ask(ctx, "jobs/"+id, &now)
		if !errors.Is(err, errNotFound) {
			return now, err
		}
		// The job manager was killed before the job was on record, and the client submits it again.
	}
	var all []view
	if err = o.c.ask(ctx, "jobs", &all); err == nil && len(all) > 0 {
		now = all[0]
	}
	return now, err
}

// saw keeps the state, and tells what has changed.
func (o *observer) saw(now view) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.last
	o.last = now
	if now.State != before.State || now.Attempt != before.Attempt || now.Detail != before.Detail {
		from := ""
		if now.From != "" {
			from = ", from " + now.From
		}
		o.c.story.tell("job %s, attempt %d%s: %s", now.State, now.Attempt, from, now.Detail)
	}
	if n := now.superstep(); n > 0 && before.superstep() == 0 {
		o.c.story.tell("job in superstep %d of attempt %d", n, now.Attempt)
	}
}
