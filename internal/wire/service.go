package wire

import "context"

// JobManager is the gRPC service of a job manager, under the name superstep.v1.JobManager. The
// interfaces below are the types of its streams; the generic streams of gRPC implement them.
type JobManager interface {
	// The following methods are called by task managers.
	Connect(stream BidiStream[FromTaskManager, ToTaskManager]) error
	Deliver(stream ClientStream[Delivery, Delivered]) error
	FetchArtifact(req *FetchRequest, stream ServerStream[Chunk]) error

	// The following methods are called by clients.
	HasArtifact(ctx context.Context, req *HasArtifactRequest) (*HasArtifactReply, error)
	UploadArtifact(stream ClientStream[Chunk, UploadReply]) error
	Submit(ctx context.Context, req *SubmitRequest) (*SubmitReply, error)
	Follow(req *FollowRequest, stream ServerStream[Event]) error
	List(ctx context.Context, req *ListRequest) (*ListReply, error)
	Show(ctx context.Context, req *ShowRequest) (*JobInfo, error)
	Cancel(ctx context.Context, req *CancelRequest) (*CancelReply, error)
	Savepoint(ctx context.Context, req *SavepointRequest) (*SavepointReply, error)
	Scale(ctx context.Context, req *ScaleRequest) (*ScaleReply, error)
	Cordon(ctx context.Context, req *CordonRequest) (*CordonReply, error)
	Uncordon(ctx context.Context, req *UncordonRequest) (*CordonReply, error)
	Drain(ctx context.Context, req *DrainRequest) (*DrainReply, error)
	Results(ctx context.Context, req *ResultsRequest) (*ResultsReply, error)
	Result(req *ResultRequest, stream ServerStream[ResultPiece]) error
	Logs(req *LogsRequest, stream ServerStream[LogChunk]) error
	TaskManagers(ctx context.Context, req *TaskManagersRequest) (*TaskManagersReply, error)
	Overview(ctx context.Context, req *OverviewRequest) (*Overview, error)
}

// ServerStream is the server's side of a stream of answers.
type ServerStream[Out any] interface {
	Context() context.Context
	Send(*Out) error
}

// ClientStream is the server's side of a stream of requests with one answer.
type ClientStream[In, Out any] interface {
	Context() context.Context
	Recv() (*In, error) // io.EOF after the last request
	SendAndClose(*Out) error
}

// BidiStream is the server's side of a stream on which both sides send messages.
type BidiStream[In, Out any] interface {
	Context() context.Context
	Recv() (*In, error)
	Send(*Out) error
}
