package rest

import "net/http"

// page serves the page that a browser shows if a user opens the address of the server. The page
// has no script and no style, because the Content-Security-Policy of the answers forbids both.
func (s *Server) page(w http.ResponseWriter, _ *http.Request) error {
	s.send(w, http.StatusOK, mediaHTML, []byte(page))
	return nil
}

const page = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Superstep job manager</title></head>
<body>
<h1>Superstep job manager</h1>
<p>The API is at <code>` + base + `</code>, described by <code>` + base + `/openapi.json</code>; metrics for Prometheus are at <code>/metrics</code>.
Both want the job manager's token:</p>
<pre>curl -H "Authorization: Bearer $(cat TOKEN_FILE)" http://HOST:PORT` + base + `/overview</pre>
<p><a href="/healthz">/healthz</a> and <a href="/readyz">/readyz</a> are open.</p>
<p>From a terminal: <code>superstep list</code>, <code>superstep show</code>, <code>superstep taskmanagers</code>, <code>superstep cordon</code>.</p>
</body>
</html>
`
