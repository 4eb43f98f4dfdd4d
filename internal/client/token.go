package client

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/superstep-ml/superstep/internal/security"
)

// The environment variables for the path of a token file and for a token.
const (
	tokenFileEnv = "SUPERSTEP_TOKEN_FILE"
	tokenEnv     = "SUPERSTEP_TOKEN"
)

// foundToken is a token and its origin, for errors. If there is no token, missing is an error
// with the paths that were tried.
type foundToken struct {
	token   security.Token
	from    string
	missing error
}

// findToken looks for the token in the options, in the environment, and then in the token file
// of a job manager of this user on the given port. If that file does not exist, findToken
// returns no error: perhaps no job manager runs, and then the error about that is more useful.
func (o *Options) findToken(port int) (foundToken, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	if !o.Token.IsZero() {
		return foundToken{token: o.Token, from: "the options"}, nil
	}
	for _, named := range []struct{ path, by string }{{o.TokenFile, "--token-file"}, {getenv(tokenFileEnv), tokenFileEnv}} {
		if named.path == "" {
			continue
		}
		token, err := security.ReadToken(named.path)
		if err != nil {
			return foundToken{}, fmt.Errorf("the token of the cluster (%s): %w", named.by, err)
		}
		return foundToken{token: token, from: named.path}, nil
	}
	if text := getenv(tokenEnv); text != "" {
		token, err := security.ParseToken(text)
		if err != nil {
			return foundToken{}, fmt.Errorf("the token of the cluster (%s): %w", tokenEnv, err)
		}
		return foundToken{token: token, from: tokenEnv}, nil
	}
	token, err := security.FindToken(port)
	if errors.Is(err, fs.ErrNotExist) {
		return foundToken{missing: err}, nil
	}
	if err != nil {
		return foundToken{}, fmt.Errorf("the token of the cluster: %w", err)
	}
	return foundToken{token: token, from: "the token file of a job manager of this user"}, nil
}
