package wire

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// DialOptions returns the gRPC options for a client of a job manager: the codec, the limits of
// message sizes, and the times of pings and reconnections. The caller adds the transport
// credentials and the token.
//
//	conn, err := grpc.NewClient(address, append(wire.DialOptions(), …)...)
//	jobs := wire.NewClient(conn)
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}),
			grpc.MaxCallRecvMsgSize(MaxMessage+sumBytes),
			grpc.MaxCallSendMsgSize(MaxMessage+sumBytes),
		),
		grpc.WithMaxHeaderListSize(maxHeaderList),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithWriteBufferSize(readBuffer),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: ConnectTimeout,
		}),
		// An idle connection stays open, so that the first call after a pause need not wait for
		// a connection.
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(), // prevents DNS look-ups of TXT records
		grpc.WithUserAgent("superstep"),
	}
}

// Client calls a job manager. The texts of its errors do not have the texts that gRPC adds;
// Code returns the codes of the errors. Unary calls take at most CallTimeout unless the context
// has a deadline. A stream lasts until its context is done. To free the resources of a stream,
// the caller must end the context of the stream or read the stream until an error.
type Client struct {
	cc grpc.ClientConnInterface
}

// NewClient returns a client that calls over cc. The caller closes cc.
func NewClient(cc grpc.ClientConnInterface) *Client { return &Client{cc: cc} }

// HasArtifact returns whether the job manager already has an executable.
func (c *Client) HasArtifact(ctx context.Context, req *HasArtifactRequest) (*HasArtifactReply, error) {
	return invoke[HasArtifactReply](ctx, c, "HasArtifact", req)
}

// Submit submits a job.
func (c *Client) Submit(ctx context.Context, req *SubmitRequest) (*SubmitReply, error) {
	return invoke[SubmitReply](ctx, c, "Submit", req)
}

// List returns jobs.
func (c *Client) List(ctx context.Context, req *ListRequest) (*ListReply, error) {
	return invoke[ListReply](ctx, c, "List", req)
}

// Show returns a job.
func (c *Client) Show(ctx context.Context, req *ShowRequest) (*JobInfo, error) {
	return invoke[JobInfo](ctx, c, "Show", req)
}

// Cancel cancels a job.
func (c *Client) Cancel(ctx context.Context, req *CancelRequest) (*CancelReply, error) {
	return invoke[CancelReply](ctx, c, "Cancel", req)
}

// Scale sets with how many subtasks a job may run.
func (c *Client) Scale(ctx context.Context, req *ScaleRequest) (*ScaleReply, error) {
	return invoke[ScaleReply](ctx, c, "Scale", req)
}

// Savepoint makes a checkpoint of a running job, and copies it to a place of its own.
func (c *Client) Savepoint(ctx context.Context, req *SavepointRequest) (*SavepointReply, error) {
	return invoke[SavepointReply](ctx, c, "Savepoint", req)
}

// Drain cordons the task managers of a name, and makes the jobs there leave them.
func (c *Client) Drain(ctx context.Context, req *DrainRequest) (*DrainReply, error) {
	return invoke[DrainReply](ctx, c, "Drain", req)
}

// Cordon keeps new workers from the task managers of a name.
func (c *Client) Cordon(ctx context.Context, req *CordonRequest) (*CordonReply, error) {
	return invoke[CordonReply](ctx, c, "Cordon", req)
}

// Uncordon allows new workers on the task managers of a name.
func (c *Client) Uncordon(ctx context.Context, req *UncordonRequest) (*CordonReply, error) {
	return invoke[CordonReply](ctx, c, "Uncordon", req)
}

// Results returns the list of the results of a job that has finished.
func (c *Client) Results(ctx context.Context, req *ResultsRequest) (*ResultsReply, error) {
	return invoke[ResultsReply](ctx, c, "Results", req)
}

// TaskManagers returns the task managers.
func (c *Client) TaskManagers(ctx context.Context, req *TaskManagersRequest) (*TaskManagersReply, error) {
	return invoke[TaskManagersReply](ctx, c, "TaskManagers", req)
}

// Overview returns a summary of the cluster.
func (c *Client) Overview(ctx context.Context, req *OverviewRequest) (*Overview, error) {
	return invoke[Overview](ctx, c, "Overview", req)
}

// Connect begins the stream of a task manager, on which both sides send messages.
func (c *Client) Connect(ctx context.Context) (grpc.BidiStreamingClient[FromTaskManager, ToTaskManager], error) {
	return open[FromTaskManager, ToTaskManager](ctx, c, "Connect")
}

// Deliver begins the stream of one worker's rows, text and log lines. If Send returns io.EOF,
// the job manager has ended the stream, and CloseAndRecv returns the reason.
func (c *Client) Deliver(ctx context.Context) (grpc.ClientStreamingClient[Delivery, Delivered], error) {
	return open[Delivery, Delivered](ctx, c, "Deliver")
}

// UploadArtifact begins the upload of an executable. If Send returns io.EOF, the job manager
// has ended the stream, and CloseAndRecv returns the reason.
func (c *Client) UploadArtifact(ctx context.Context) (grpc.ClientStreamingClient[Chunk, UploadReply], error) {
	return open[Chunk, UploadReply](ctx, c, "UploadArtifact")
}

// FetchArtifact streams an executable.
func (c *Client) FetchArtifact(ctx context.Context, req *FetchRequest) (grpc.ServerStreamingClient[Chunk], error) {
	return ask[FetchRequest, Chunk](ctx, c, "FetchArtifact", req)
}

// Follow streams the events of a job.
func (c *Client) Follow(ctx context.Context, req *FollowRequest) (grpc.ServerStreamingClient[Event], error) {
	return ask[FollowRequest, Event](ctx, c, "Follow", req)
}

// Result streams one result of a job that has finished.
func (c *Client) Result(ctx context.Context, req *ResultRequest) (grpc.ServerStreamingClient[ResultPiece], error) {
	return ask[ResultRequest, ResultPiece](ctx, c, "Result", req)
}

// Logs streams the logs of the workers of a job.
func (c *Client) Logs(ctx context.Context, req *LogsRequest) (grpc.ServerStreamingClient[LogChunk], error) {
	return ask[LogsRequest, LogChunk](ctx, c, "Logs", req)
}

// invoke makes a unary call.
func invoke[Out any](ctx context.Context, c *Client, method string, in any) (*Out, error) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		var cancel context.CancelFunc
		deadline = time.Now().Add(CallTimeout)
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	out := new(Out)
	err := c.cc.Invoke(ctx, path(method), in, out)
	switch {
	case err == nil:
		return out, nil
	case Code(err) == codes.Canceled && ctx.Err() != context.Canceled && !time.Now().Before(deadline):
		// The other side knows the deadline too, and has ended the call before this side did.
		err = status.FromContextError(context.DeadlineExceeded).Err()
	}
	return nil, plain(err)
}

// streams maps methods to the gRPC descriptions of their streams.
var streams = func() map[string]*grpc.StreamDesc {
	byName := map[string]*grpc.StreamDesc{}
	for i := range description.Streams {
		byName[description.Streams[i].StreamName] = &description.Streams[i]
	}
	return byName
}()

// open begins a stream.
func open[In, Out any](ctx context.Context, c *Client, method string) (*grpc.GenericClientStream[In, Out], error) {
	stream, err := c.cc.NewStream(ctx, streams[method], path(method))
	if err != nil {
		return nil, plain(err)
	}
	return &grpc.GenericClientStream[In, Out]{ClientStream: plainClient{stream}}, nil
}

// ask begins a stream of answers to one request. If it returns an error, gRPC has already ended
// the stream.
func ask[In, Out any](ctx context.Context, c *Client, method string, req *In) (*grpc.GenericClientStream[In, Out], error) {
	stream, err := open[In, Out](ctx, c, method)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(req); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	return stream, nil
}

// plainClient is a stream whose errors are converted by the function plain.
type plainClient struct{ grpc.ClientStream }

func (s plainClient) RecvMsg(m any) error { return plain(s.ClientStream.RecvMsg(m)) }
func (s plainClient) SendMsg(m any) error { return plain(s.ClientStream.SendMsg(m)) }
func (s plainClient) CloseSend() error    { return plain(s.ClientStream.CloseSend()) }
