package client

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Submit submits a job. If the answer is lost because the job manager goes away, Submit sends the
// request again until ctx ends. All requests have the same key, so that the job manager takes the
// job once. If ctx has ended, the error is that of the last request; the job manager may have the
// job then.
func (c *Client) Submit(ctx context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	keyed := *req
	keyed.Key = rand.Text()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		reply, err := c.Client.Submit(ctx, &keyed)
		if err == nil || !passing(err) {
			return reply, err
		}
		if pause == firstPause {
			c.options.Logger.Warn("the job manager is away, submitting the job again", "address", c.address, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}
