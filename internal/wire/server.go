package wire

import (
	"context"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
)

// service is the name of the gRPC service of a job manager.
const service = "superstep.v1.JobManager"

// These are the time limits of connections, on both sides. They detect a machine that is
// disconnected from the network or a process that is stopped. They are long, since heartbeats
// detect the loss of a task manager or a worker earlier.
const (
	// CallTimeout bounds the time of a unary call. The client applies it if the caller has set
	// no deadline, and the server always applies it.
	CallTimeout = 60 * time.Second
	// ConnectTimeout bounds the handshake of a new connection, including TLS.
	ConnectTimeout = 10 * time.Second

	pingAfter   = 10 * time.Second // silence after which a side sends a ping
	pingTimeout = 15 * time.Second // time after which the connection is closed if a ping is not answered
	pingSlowest = 5 * time.Second  // minimum time between a client's pings; a client that pings more often is disconnected
)

// These are the bounds of a connection.
const (
	maxStreams    = 4096     // number of concurrent streams of one client: a Deliver for each worker, and the client's other calls
	maxHeaderList = 16 << 10 // bytes of headers: a token and a few short headers
	readBuffer    = 64 << 10
)

// ServerOptions returns the gRPC options for a server of JobManager: the codec, the limits of
// message sizes, and the times of pings. The caller adds the credentials.
//
//	s := grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(tls), …)...)
//	wire.RegisterJobManager(s, manager)
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(MaxMessage + sumBytes),
		grpc.MaxSendMsgSize(MaxMessage + sumBytes),
		grpc.MaxHeaderListSize(maxHeaderList),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(ConnectTimeout),
		grpc.WaitForHandlers(true), // Stop returns when no call is running
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(readBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle:     time.Duration(math.MaxInt64),
			MaxConnectionAge:      time.Duration(math.MaxInt64),
			MaxConnectionAgeGrace: time.Duration(math.MaxInt64),
			Time:                  pingAfter,
			Timeout:               pingTimeout,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingSlowest, PermitWithoutStream: true}),
	}
}

// RegisterJobManager registers impl as the JobManager service of s.
func RegisterJobManager(s *grpc.Server, impl JobManager) { s.RegisterService(&description, impl) }

// description describes the service JobManager for gRPC. It corresponds to the code that would
// be generated from a protocol file.
var description = grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*JobManager)(nil),
	Methods: []grpc.MethodDesc{
		unary("HasArtifact", JobManager.HasArtifact),
		unary("Submit", JobManager.Submit),
		unary("List", JobManager.List),
		unary("Show", JobManager.Show),
		unary("Cancel", JobManager.Cancel),
		unary("Savepoint", JobManager.Savepoint),
		unary("Scale", JobManager.Scale),
		unary("Cordon", JobManager.Cordon),
		unary("Uncordon", JobManager.Uncordon),
		unary("Drain", JobManager.Drain),
		unary("Results", JobManager.Results),
		unary("TaskManagers", JobManager.TaskManagers),
		unary("Overview", JobManager.Overview),
	},
	Streams: []grpc.StreamDesc{
		bidi("Connect", JobManager.Connect),
		requests("Deliver", JobManager.Deliver),
		answers("FetchArtifact", JobManager.FetchArtifact),
		requests("UploadArtifact", JobManager.UploadArtifact),
		answers("Follow", JobManager.Follow),
		answers("Result", JobManager.Result),
		answers("Logs", JobManager.Logs),
	},
	Metadata: "internal/wire/service.go",
}

// path returns the full name that a method has in gRPC.
func path(method string) string { return "/" + service + "/" + method }

// unary describes a call with one request and one answer.
func unary[In, Out any](name string, call func(JobManager, context.Context, *In) (*Out, error)) grpc.MethodDesc {
	handle := func(impl any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, CallTimeout)
		defer cancel()
		in := new(In)
		if err := decode(in); err != nil {
			return nil, plain(err)
		}
		answer := func(ctx context.Context, req any) (any, error) {
			out, err := call(impl.(JobManager), ctx, req.(*In))
			if err != nil {
				return nil, err
			}
			if out == nil {
				return nil, Error(codes.Internal, "%s has no answer", name)
			}
			return out, nil
		}
		if interceptor == nil {
			return answer(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: impl, FullMethod: path(name)}, answer)
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}

// bidi describes a stream on which both sides send messages.
func bidi[In, Out any](name string, call func(JobManager, BidiStream[In, Out]) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, ClientStreams: true, Handler: func(impl any, stream grpc.ServerStream) error {
		return call(impl.(JobManager), &grpc.GenericServerStream[In, Out]{ServerStream: plainServer{stream}})
	}}
}

// requests describes a stream of requests with one answer.
func requests[In, Out any](name string, call func(JobManager, ClientStream[In, Out]) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ClientStreams: true, Handler: func(impl any, stream grpc.ServerStream) error {
		return call(impl.(JobManager), &grpc.GenericServerStream[In, Out]{ServerStream: plainServer{stream}})
	}}
}

// answers describes a stream of answers to one request.
func answers[In, Out any](name string, call func(JobManager, *In, ServerStream[Out]) error) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ServerStreams: true, Handler: func(impl any, stream grpc.ServerStream) error {
		in := new(In)
		if err := stream.RecvMsg(in); err != nil {
			return plain(err)
		}
		return call(impl.(JobManager), in, &grpc.GenericServerStream[In, Out]{ServerStream: plainServer{stream}})
	}}
}

// plainServer is a stream whose errors are converted by the function plain.
type plainServer struct{ grpc.ServerStream }

func (s plainServer) RecvMsg(m any) error { return plain(s.ServerStream.RecvMsg(m)) }
func (s plainServer) SendMsg(m any) error { return plain(s.ServerStream.SendMsg(m)) }
