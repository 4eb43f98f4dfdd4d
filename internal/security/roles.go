package security

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/superstep-ml/superstep/internal/wire"
)

// ofTaskManagers has the names of the calls that only task managers may make.
var ofTaskManagers = []string{"Connect", "Deliver", "FetchArtifact"}

// StreamRoles returns an interceptor that refuses the calls of task managers if the caller's
// certificate names only other roles, so that a client cannot receive the programs of others.
// It admits connections without client certificates and certificates without roles.
// TokenOptions includes it.
func StreamRoles() grpc.StreamServerInterceptor {
	return func(impl any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
		have := rolesOf(stream)
		if slices.Contains(ofTaskManagers, method) && len(have) > 0 && !slices.Contains(have, RoleTaskManager) {
			return wire.Error(codes.PermissionDenied, "%s is for task managers, and this is the certificate of a %s: give that of a task manager with --tls-cert and --tls-key", method, strings.Join(have, " and "))
		}
		return next(impl, stream)
	}
}

// rolesOf returns the roles in the certificate of the caller of a stream, or nil if there is no
// certificate.
func rolesOf(stream grpc.ServerStream) []string {
	p, ok := peer.FromContext(stream.Context())
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}
	return roles(info.State.PeerCertificates[0])
}
