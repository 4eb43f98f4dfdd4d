package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// fake is a job manager that answers each call with a part of the request, so that tests can
// check that request and answer have arrived.
type fake struct {
	blocked chan struct{} // closed when Overview is called
	ended   chan error    // receives the error that ended a call of Connect
}

func newFake() *fake { return &fake{blocked: make(chan struct{}), ended: make(chan error, 16)} }

func (f *fake) Connect(stream BidiStream[FromTaskManager, ToTaskManager]) (err error) {
	defer func() { f.ended <- err }()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case m.Register != nil:
			if err := CheckVersions(m.Register.Version, "the task manager "+m.Register.Name, "the job manager"); err != nil {
				return err
			}
			err = stream.Send(&ToTaskManager{Registered: &Registered{Cluster: m.Register.Name, Lease: time.Minute}})
		case m.Heartbeat != nil:
			err = stream.Send(&ToTaskManager{Ack: &Ack{Number: m.Heartbeat.Number}})
		}
		if err != nil {
			return err
		}
	}
}

func (f *fake) Deliver(stream ClientStream[Delivery, Delivered]) error {
	total := 0
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if total != 12 {
				return Error(codes.DataLoss, "%d bytes came", total)
			}
			return stream.SendAndClose(&Delivered{})
		}
		if err != nil {
			return err
		}
		total += len(d.Log)
	}
}

func (f *fake) FetchArtifact(req *FetchRequest, stream ServerStream[Chunk]) error {
	for i := range 3 {
		if err := stream.Send(&Chunk{Hash: req.Hash, Size: int64(i), Data: []byte{byte(i)}}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) HasArtifact(_ context.Context, req *HasArtifactRequest) (*HasArtifactReply, error) {
	return &HasArtifactReply{Has: req.Hash == "there"}, nil
}

func (f *fake) UploadArtifact(stream ClientStream[Chunk, UploadReply]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	return Error(codes.ResourceExhausted, "the artifact is larger than 1 GB")
}

func (f *fake) Submit(_ context.Context, req *SubmitRequest) (*SubmitReply, error) {
	return &SubmitReply{Job: JobID(req.Spec.Name)}, nil
}

func (f *fake) Follow(req *FollowRequest, stream ServerStream[Event]) error {
	for n := req.From; n < req.From+3; n++ {
		if err := stream.Send(&Event{Number: n}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (f *fake) List(_ context.Context, req *ListRequest) (*ListReply, error) {
	return &ListReply{Jobs: make([]JobInfo, req.Limit)}, nil
}

func (f *fake) Show(_ context.Context, req *ShowRequest) (*JobInfo, error) {
	return nil, fmt.Errorf("show: %w", Error(codes.NotFound, "there is no job %s", req.Job))
}

func (f *fake) Cancel(_ context.Context, req *CancelRequest) (*CancelReply, error) {
	return &CancelReply{Job: JobInfo{ID: req.Job, State: JobCancelled, Detail: req.Reason}}, nil
}

func (f *fake) Cordon(_ context.Context, req *CordonRequest) (*CordonReply, error) {
	return &CordonReply{TaskManager: req.TaskManager, Cordon: &Cordon{Reason: req.Reason}}, nil
}

func (f *fake) Uncordon(_ context.Context, req *UncordonRequest) (*CordonReply, error) {
	return &CordonReply{TaskManager: req.TaskManager}, nil
}

func (f *fake) Scale(_ context.Context, req *ScaleRequest) (*ScaleReply, error) {
	return &ScaleReply{Job: JobInfo{ID: req.Job, Allowed: req.Parallelism}}, nil
}

func (f *fake) Savepoint(_ context.Context, req *SavepointRequest) (*SavepointReply, error) {
	return &SavepointReply{Job: req.Job, Checkpoint: Origin{Number: len(req.Place)}}, nil
}

func (f *fake) Drain(_ context.Context, req *DrainRequest) (*DrainReply, error) {
	return &DrainReply{CordonReply: CordonReply{TaskManager: req.TaskManager}, Leave: []JobID{"a"}, Stay: []JobID{JobID(req.Within.String())}}, nil
}

func (f *fake) Logs(req *LogsRequest, stream ServerStream[LogChunk]) error {
	if err := stream.Send(&LogChunk{Worker: req.Worker, Text: []byte("line\n")}); err != nil {
		return err
	}
	return errors.New("the disk is gone")
}

func (f *fake) Results(_ context.Context, req *ResultsRequest) (*ResultsReply, error) {
	return &ResultsReply{Job: req.Job, Results: []ResultInfo{{Name: "a", Kind: ResultRows, Rows: 2}}}, nil
}

func (f *fake) Result(req *ResultRequest, stream ServerStream[ResultPiece]) error {
	return stream.Send(&ResultPiece{Kind: ResultText, Text: []byte(req.Name)})
}

func (f *fake) TaskManagers(context.Context, *TaskManagersRequest) (*TaskManagersReply, error) {
	return nil, nil
}

func (f *fake) Overview(ctx context.Context, _ *OverviewRequest) (*Overview, error) {
	close(f.blocked)
	<-ctx.Done()
	return nil, ctx.Err()
}

// serve starts a job manager that is connected in memory, and stops it when the test ends.
func serve(t *testing.T, impl JobManager, options ...grpc.DialOption) (*Client, *grpc.ClientConn) {
	t.Helper()
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(ServerOptions()...)
	RegisterJobManager(s, impl)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	options = append(DialOptions(), append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
	}, options...)...)
	conn, err := grpc.NewClient("passthrough:///memory", options...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		s.Stop()
		require.NoError(t, <-served)
	})
	return NewClient(conn), conn
}

func TestCallsWithOneAnswer(t *testing.T) {
	c, _ := serve(t, newFake())
	ctx := t.Context()

	has, err := c.HasArtifact(ctx, &HasArtifactRequest{Hash: "there"})
	require.NoError(t, err)
	require.True(t, has.Has)

	submitted, err := c.Submit(ctx, &SubmitRequest{Spec: JobSpec{Name: "kmeans", Graph: make([]byte, 10<<20)}})
	require.NoError(t, err)
	require.Equal(t, JobID("kmeans"), submitted.Job)

	list, err := c.List(ctx, &ListRequest{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, list.Jobs, 1000)

	cancelled, err := c.Cancel(ctx, &CancelRequest{Job: "j", Reason: "tired"})
	require.NoError(t, err)
	require.Equal(t, CancelReply{Job: JobInfo{ID: "j", State: JobCancelled, Detail: "tired"}}, *cancelled)

	cordoned, err := c.Cordon(ctx, &CordonRequest{TaskManager: "b", Reason: "repair"})
	require.NoError(t, err)
	require.Equal(t, CordonReply{TaskManager: "b", Cordon: &Cordon{Reason: "repair"}}, *cordoned)
	cordoned, err = c.Uncordon(ctx, &UncordonRequest{TaskManager: "b"})
	require.NoError(t, err)
	require.Equal(t, CordonReply{TaskManager: "b"}, *cordoned)
	drained, err := c.Drain(ctx, &DrainRequest{TaskManager: "b", Within: time.Minute})
	require.NoError(t, err)
	require.Equal(t, DrainReply{CordonReply: CordonReply{TaskManager: "b"}, Leave: []JobID{"a"}, Stay: []JobID{"1m0s"}}, *drained)
	scaled, err := c.Scale(ctx, &ScaleRequest{Job: "j", Parallelism: Parallelism{2, 8}})
	require.NoError(t, err)
	require.Equal(t, ScaleReply{Job: JobInfo{ID: "j", Allowed: Parallelism{2, 8}}}, *scaled)
	saved, err := c.Savepoint(ctx, &SavepointRequest{Job: "j", Place: "/abc"})
	require.NoError(t, err)
	require.Equal(t, SavepointReply{Job: "j", Checkpoint: Origin{Number: 4}}, *saved)

	_, err = c.Show(ctx, &ShowRequest{Job: "lost"})
	require.EqualError(t, err, "show: there is no job lost")
	require.Equal(t, codes.NotFound, Code(err))

	results, err := c.Results(ctx, &ResultsRequest{Job: "j"})
	require.NoError(t, err)
	require.Equal(t, ResultsReply{Job: "j", Results: []ResultInfo{{Name: "a", Kind: ResultRows, Rows: 2}}}, *results)

	_, err = c.TaskManagers(ctx, &TaskManagersRequest{})
	require.EqualError(t, err, "TaskManagers has no answer")
}

func TestConversation(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f)
	stream, err := c.Connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&FromTaskManager{Register: &Register{Version: Version, Name: "tm"}}))
	m, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, ToTaskManager{Registered: &Registered{Cluster: "tm", Lease: time.Minute}}, *m)
	for n := range uint64(100) {
		require.NoError(t, stream.Send(&FromTaskManager{Heartbeat: &Heartbeat{Number: n}}))
		m, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, n, m.Ack.Number)
	}
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Equal(t, io.EOF, err)
	require.NoError(t, <-f.ended)
}

func TestConversationOfAnotherVersion(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f)
	stream, err := c.Connect(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&FromTaskManager{Register: &Register{Version: Version + 1, Name: "tm"}}))
	_, err = stream.Recv()
	require.EqualError(t, err, fmt.Sprintf("the task manager tm speaks version %d of the protocol and the job manager version %d: upgrade the job manager", Version+1, Version))
	require.Equal(t, codes.FailedPrecondition, Code(err))
	require.Error(t, <-f.ended)
}

func TestConversationThatIsCancelledEndsOnBothSides(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := c.Connect(ctx)
	require.NoError(t, err)
	require.NoError(t, stream.Send(&FromTaskManager{Heartbeat: &Heartbeat{}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel()
	_, err = stream.Recv()
	require.EqualError(t, err, "cancelled")
	require.ErrorIs(t, err, context.Canceled)
	there := <-f.ended
	require.EqualError(t, there, "cancelled")
	require.ErrorIs(t, there, context.Canceled)
}

func TestStreamsOfRequests(t *testing.T) {
	c, _ := serve(t, newFake())
	delivery, err := c.Deliver(t.Context())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, delivery.Send(&Delivery{Log: []byte("abc\n")}))
	}
	_, err = delivery.CloseAndRecv()
	require.NoError(t, err)

	upload, err := c.UploadArtifact(t.Context())
	require.NoError(t, err)
	for err == nil {
		err = upload.Send(&Chunk{Data: make([]byte, ChunkBytes)})
	}
	require.Equal(t, io.EOF, err)
	_, err = upload.CloseAndRecv()
	require.EqualError(t, err, "the artifact is larger than 1 GB")
	require.Equal(t, codes.ResourceExhausted, Code(err))
}

func TestStreamsOfAnswers(t *testing.T) {
	c, _ := serve(t, newFake())
	fetch, err := c.FetchArtifact(t.Context(), &FetchRequest{Hash: "h"})
	require.NoError(t, err)
	for i := range 3 {
		chunk, err := fetch.Recv()
		require.NoError(t, err)
		require.Equal(t, Chunk{Hash: "h", Size: int64(i), Data: []byte{byte(i)}}, *chunk)
	}
	_, err = fetch.Recv()
	require.Equal(t, io.EOF, err)

	result, err := c.Result(t.Context(), &ResultRequest{Name: "a"})
	require.NoError(t, err)
	piece, err := result.Recv()
	require.NoError(t, err)
	require.Equal(t, ResultPiece{Kind: ResultText, Text: []byte("a")}, *piece)

	logs, err := c.Logs(t.Context(), &LogsRequest{Worker: 3})
	require.NoError(t, err)
	chunk, err := logs.Recv()
	require.NoError(t, err)
	require.Equal(t, LogChunk{Worker: 3, Text: []byte("line\n")}, *chunk)
	_, err = logs.Recv()
	require.EqualError(t, err, "the disk is gone")
	require.Equal(t, codes.Unknown, Code(err))

	ctx, cancel := context.WithCancel(t.Context())
	follow, err := c.Follow(ctx, &FollowRequest{From: 7})
	require.NoError(t, err)
	for n := uint64(7); n < 10; n++ {
		e, err := follow.Recv()
		require.NoError(t, err)
		require.Equal(t, n, e.Number)
	}
	cancel()
	_, err = follow.Recv()
	require.ErrorIs(t, err, context.Canceled)
}

func TestCallThatIsCancelled(t *testing.T) {
	f := newFake()
	c, _ := serve(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-f.blocked
		cancel()
	}()
	_, err := c.Overview(ctx, &OverviewRequest{})
	require.EqualError(t, err, "cancelled")
	require.ErrorIs(t, err, context.Canceled)
}

func TestCallsHaveDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := serve(t, newFake())
		start := time.Now()
		_, err := c.Overview(context.Background(), &OverviewRequest{})
		require.EqualError(t, err, "no answer in time")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, CallTimeout, time.Since(start))
	})
}

func TestTooLargeMessagesAreNotSent(t *testing.T) {
	c, conn := serve(t, newFake())
	_, err := c.Show(t.Context(), &ShowRequest{Job: JobID(strings.Repeat("x", MaxRequest))})
	require.EqualError(t, err, fmt.Sprintf("a message ShowRequest of %d bytes is larger than the limit of %d", MaxRequest+10, MaxRequest))

	upload, err := c.UploadArtifact(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, upload.Send(&Chunk{Data: make([]byte, MaxChunk)}), "larger than the limit of 2097152")

	// The other side must refuse a message that exceeds the limits.
	var out JobInfo
	err = conn.Invoke(t.Context(), path("Show"), &Output{Text: make([]byte, MaxRequest)}, &out)
	require.ErrorContains(t, plain(err), "a message ShowRequest of")
	err = conn.Invoke(t.Context(), path("Show"), &raw{make([]byte, MaxMessage+1)}, &out, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallSendMsgSize(1<<30))
	require.EqualError(t, plain(err), fmt.Sprintf("a message is larger than the limit (%d vs. %d)", MaxMessage+1+sumBytes, MaxMessage+sumBytes))
}

func TestGarbageIsRefused(t *testing.T) {
	_, conn := serve(t, newFake())
	for _, garbage := range []string{"", "\xdf\xff\xff\xff\xff", "\xc1", "GET / HTTP/1.1\r\n", strings.Repeat("\x91", 100_000), "\x81\xa3job\xc6\xff\xff\xff\xff"} {
		var out JobInfo
		err := conn.Invoke(t.Context(), path("Show"), &raw{[]byte(garbage)}, &out, grpc.ForceCodecV2(rawCodec{}))
		require.Equal(t, codes.Internal, status.Code(err), "%q: %v", garbage, err)
		require.ErrorContains(t, plain(err), "ShowRequest")
		require.NotContains(t, plain(err).Error(), "rpc")

		stream, err := conn.NewStream(t.Context(), streams["Connect"], path("Connect"), grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(&raw{[]byte(garbage)}))
		err = stream.RecvMsg(&raw{})
		require.Equal(t, codes.Internal, status.Code(err), "%q: %v", garbage, err)
		require.ErrorContains(t, plain(err), "FromTaskManager")

		stream, err = conn.NewStream(t.Context(), streams["Follow"], path("Follow"), grpc.ForceCodecV2(rawCodec{}))
		require.NoError(t, err)
		require.NoError(t, stream.SendMsg(&raw{[]byte(garbage)}))
		err = stream.RecvMsg(&raw{})
		require.Equal(t, codes.Internal, status.Code(err), "%q: %v", garbage, err)
	}
	stream, err := conn.NewStream(t.Context(), streams["Follow"], path("Follow"))
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	require.ErrorContains(t, plain(stream.RecvMsg(&Event{})), "received no request message")
}

func TestUnknownMethodsAndServices(t *testing.T) {
	_, conn := serve(t, newFake())
	err := plain(conn.Invoke(t.Context(), path("Rescale"), &ShowRequest{}, &JobInfo{}))
	require.EqualError(t, err, "the other side does not know the call Rescale: it is older than this program, or no job manager; upgrade it")
	err = plain(conn.Invoke(t.Context(), "/superstep.v9.JobManager/Show", &ShowRequest{}, &JobInfo{}))
	require.EqualError(t, err, "what answers there is no job manager: check the address")
}

func TestNobodyThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	conn, err := grpc.NewClient(address, append(DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	defer conn.Close()
	_, err = NewClient(conn).List(t.Context(), &ListRequest{})
	require.EqualError(t, err, "dial tcp "+address+": connect: connection refused")
	require.Equal(t, codes.Unavailable, Code(err))
}

func TestServiceIsWhole(t *testing.T) {
	require.Len(t, description.Methods, 13)
	require.Len(t, description.Streams, 7)
	require.Nil(t, encoding.GetCodecV2("msgpack"), "the codec must not be registered for the whole process")
}

// raw is a message whose bytes rawCodec sends unchanged.
type raw struct{ data []byte }

// TestWhoeverGivesUpFirst requires that the caller gets the same error at the deadline of a
// call, whichever side ends the call first.
func TestWhoeverGivesUpFirst(t *testing.T) {
	for _, text := range []string{"context deadline exceeded", "stream terminated by RST_STREAM with error code: CANCEL"} {
		err := plain(status.Error(codes.DeadlineExceeded, text))
		require.EqualError(t, err, "no answer in time")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.EqualError(t, plain(status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")), "cancelled by the other side")
	for _, text := range []string{
		"stream terminated by RST_STREAM with error code: PROTOCOL_ERROR",
		`connection error: desc = "error reading server preface: http2: frame too large"`,
	} {
		require.ErrorContains(t, plain(status.Error(codes.Internal, text)), "damaged in transit, or is changed on the way (")
	}
}
