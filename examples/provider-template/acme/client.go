// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/examples/manager/metrics"
)

// server is a server as the cloud shows it.
type server struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels"`
	Address  string            `json:"address,omitempty"`
	Type     string            `json:"type,omitempty"`
	Image    string            `json:"image,omitempty"`
	UserData string            `json:"userData,omitempty"`
}

// clusterLabel is the label of a server with the name of its cluster.
const clusterLabel = "machinist-cluster"

// client makes requests to the cloud for one project. It shows no server of another cluster: the
// controllers delete servers that no machine belongs to.
type client struct {
	http  *http.Client
	spec  ProviderSpec
	token string
}

// create creates a server. The cloud keeps names unique in a project: AlreadyExists means that
// there is one of this name.
func (c *client) create(ctx context.Context, s server) (server, error) {
	s.Labels = map[string]string{clusterLabel: c.spec.Cluster}
	var made server
	err := c.do(ctx, http.MethodPost, nil, s, &made)
	if err == nil && made.ID == "" {
		err = errNoID
	}
	return made, err
}

// byName returns the server with a name, or NotFound.
func (c *client) byName(ctx context.Context, name string) (server, error) {
	found, err := c.list(ctx, url.Values{"name": {name}})
	if err != nil {
		return server{}, err
	}
	for _, s := range found {
		if s.Name == name {
			return s, nil
		}
	}
	return server{}, status.Error(codes.NotFound, fmt.Sprintf("no server %q of cluster %q in project %q", name, c.spec.Cluster, c.spec.Project))
}

// byID returns the server with an ID, or NotFound.
func (c *client) byID(ctx context.Context, id string) (server, error) {
	var found server
	err := c.do(ctx, http.MethodGet, nil, nil, &found, id)
	switch {
	case err != nil:
		return server{}, err
	case found.ID != id:
		return server{}, errNoID
	case found.Labels[clusterLabel] != c.spec.Cluster:
		return server{}, status.Error(codes.NotFound, fmt.Sprintf("server %q is not of cluster %q", id, c.spec.Cluster))
	}
	return found, nil
}

// list returns all servers of the cluster. This cloud answers with all of them at once. Of another
// one, read every page: a part of the list is an error.
func (c *client) list(ctx context.Context, query url.Values) ([]server, error) {
	var all, own []server
	if err := c.do(ctx, http.MethodGet, query, nil, &all); err != nil {
		return nil, err
	}
	for _, s := range all {
		switch {
		case s.ID == "":
			return nil, errNoID
		case s.Labels[clusterLabel] == c.spec.Cluster:
			own = append(own, s)
		}
	}
	return own, nil
}

// remove deletes a server. The cloud answers when it has accepted the deletion.
func (c *client) remove(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, nil, nil, nil, id)
}

var errNoID = status.Error(codes.Unavailable, "the answer of the cloud does not have the ID of the server")

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// do makes one request. Its errors have the code that a driver answers with.
func (c *client) do(ctx context.Context, method string, query url.Values, in, out any, path ...string) error {
	began := time.Now()
	err := c.request(ctx, method, query, in, out, path...)
	metrics.APIRequestCount.WithLabelValues(Provider, "servers").Inc()
	metrics.APIRequestDuration.WithLabelValues(Provider, "servers").Observe(time.Since(began).Seconds())
	if err != nil {
		metrics.APIFailedRequestCount.WithLabelValues(Provider, "servers").Inc()
	}
	return err
}

func (c *client) request(ctx context.Context, method string, query url.Values, in, out any, path ...string) error {
	request, err := c.prepare(ctx, method, query, in, path...)
	if err != nil {
		return status.WrapError(codes.InvalidArgument, "no request to the cloud can be made: "+err.Error(), err)
	}
	response, err := c.http.Do(request)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return status.WrapError(codes.Unavailable, "the cloud does not answer: "+err.Error(), err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return status.WrapError(codes.Unavailable, "the answer of the cloud broke off: "+err.Error(), err)
	}
	if err := failure(response, answer); err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return status.WrapError(codes.Unavailable, "the answer of the cloud is no JSON: "+err.Error(), err)
	}
	return nil
}

// prepare returns a request with the credential. Only a request that sends something has a body.
func (c *client) prepare(ctx context.Context, method string, query url.Values, in any, path ...string) (*http.Request, error) {
	target, err := url.Parse(c.spec.Endpoint)
	if err != nil {
		return nil, err
	}
	target = target.JoinPath(append([]string{"v1", "projects", url.PathEscape(c.spec.Project), "servers"}, path...)...)
	target.RawQuery = query.Encode()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// failure returns the error of an answer. NotFound and AlreadyExists need the word of the cloud: a
// status 404 also comes from a wrong endpoint or a proxy, and the controllers delete and create
// because of NotFound. A status that is not known is Unavailable, and the call is repeated.
func failure(response *http.Response, answer []byte) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	var said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &said) // what is no JSON has no code and no message
	message := response.Status
	if said.Message != "" {
		message += ": " + said.Message
	}
	return status.Error(codeOf(response.StatusCode, said.Code), message)
}

// codeOf returns the code of a failed answer with this status and this code of the cloud.
func codeOf(answered int, said string) codes.Code {
	switch said {
	case "ServerNotFound":
		return codes.NotFound
	case "NameExists":
		return codes.AlreadyExists
	}
	switch answered {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusConflict:
		return codes.Aborted
	case http.StatusTooManyRequests, http.StatusInsufficientStorage:
		return codes.ResourceExhausted
	default:
		return codes.Unavailable
	}
}
