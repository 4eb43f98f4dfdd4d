package commands

import (
	"context"

	"google.golang.org/grpc"

	"github.com/superstep-ml/superstep/internal/client"
	"github.com/superstep-ml/superstep/internal/security"
	"github.com/superstep-ml/superstep/internal/wire"
)

// jobManager has the methods of a job manager that commands call.
type jobManager interface {
	List(context.Context, *wire.ListRequest) (*wire.ListReply, error)
	Show(context.Context, *wire.ShowRequest) (*wire.JobInfo, error)
	Cancel(context.Context, *wire.CancelRequest) (*wire.CancelReply, error)
	Scale(context.Context, *wire.ScaleRequest) (*wire.ScaleReply, error)
	Savepoint(context.Context, *wire.SavepointRequest) (*wire.SavepointReply, error)
	Drain(context.Context, *wire.DrainRequest) (*wire.DrainReply, error)
	Cordon(context.Context, *wire.CordonRequest) (*wire.CordonReply, error)
	Uncordon(context.Context, *wire.UncordonRequest) (*wire.CordonReply, error)
	TaskManagers(context.Context, *wire.TaskManagersRequest) (*wire.TaskManagersReply, error)
	Results(context.Context, *wire.ResultsRequest) (*wire.ResultsReply, error)
	Result(context.Context, *wire.ResultRequest) (grpc.ServerStreamingClient[wire.ResultPiece], error)
	FollowToEnd(ctx context.Context, job wire.JobID, attach bool, handle func(*wire.Event) error) (*wire.JobInfo, error)
	Logs(context.Context, *wire.LogsRequest) (grpc.ServerStreamingClient[wire.LogChunk], error)
}

// clusterFlags are the flags for the address of the job manager and for the credentials.
type clusterFlags struct {
	ConfigFlag
	Cluster  string `setting:"cluster" default:"localhost:6123" placeholder:"HOST:PORT" help:"The job manager (default: ${default})."`
	Insecure bool   `setting:"insecure" help:"Talk to a job manager on another machine without TLS: anyone on the network can read the token."`
	tokenFlag
	tlsFlags
}

// tokenFlag is the flag for the file with the cluster's token.
type tokenFlag struct {
	TokenFile string `setting:"token-file" placeholder:"FILE" help:"File with the cluster's token (default: the user's own, in the runtime directory)."`
}

// tlsFlags are the flags for the certificates and the private key of TLS.
type tlsFlags struct {
	TLSCA   string `name:"tls-ca" setting:"tls.ca" placeholder:"FILE" help:"Certificate authority of the cluster, in PEM."`
	TLSCert string `name:"tls-cert" setting:"tls.cert" placeholder:"FILE" help:"Certificate of this process, in PEM."`
	TLSKey  string `name:"tls-key" setting:"tls.key" placeholder:"FILE" help:"Private key of the certificate, in PEM."`
}

func (f *tlsFlags) files() security.TLSFiles {
	return security.TLSFiles{CA: f.TLSCA, Cert: f.TLSCert, Key: f.TLSKey}
}

// with connects to the job manager, calls ask with the connection, and closes the connection.
func (f *clusterFlags) with(ctx context.Context, s *Streams, ask func(context.Context, jobManager) error) error {
	c, err := client.Dial(ctx, client.Options{Address: f.Cluster, TokenFile: f.TokenFile, TLS: f.files(), Insecure: f.Insecure})
	if err != nil {
		return err
	}
	defer c.Close()
	return ask(ctx, c)
}
