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
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
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

// client makes requests to the cloud for one project. It returns no server of another cluster,
// because the controllers delete servers without a machine.
type client struct {
	http  *http.Client
	spec  ProviderSpec
	token string
}

// create creates a server. Names are unique in a project: AlreadyExists means that a server has
// this name.
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
		return server{}, status.Error(codes.NotFound, fmt.Sprintf("server %q does not belong to cluster %q", id, c.spec.Cluster))
	}
	return found, nil
}

// list returns all servers of the cluster. This cloud has no pages. For a cloud with pages read
// all of them, and return an error if one fails.
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

var errNoID = status.Error(codes.Unavailable, "the response of the cloud has no ID of the server")

// maxAnswer is the size limit of a response.
const maxAnswer = 16 << 20

// do makes one request and counts it. Its errors have codes.
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
		return status.WrapError(codes.InvalidArgument, "cannot make a request to the cloud: "+err.Error(), err)
	}
	response, err := c.http.Do(request)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return status.WrapError(codes.Unavailable, "the cloud does not respond: "+err.Error(), err)
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return status.WrapError(codes.Unavailable, "the response of the cloud is incomplete: "+err.Error(), err)
	}
	if err := failure(response, answer); err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return status.WrapError(codes.Unavailable, "the response of the cloud is not JSON: "+err.Error(), err)
	}
	return nil
}

// prepare returns a request with the credential. Without in it has no body.
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

// failure returns the error of a response, or nil. NotFound and AlreadyExists need the code of the
// cloud, because a status 404 may come from a wrong endpoint or a proxy, and the controllers
// create and delete VMs because of NotFound. An unknown status is Unavailable.
func failure(response *http.Response, answer []byte) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	var said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &said) // other content has no code and no message
	message := response.Status
	if said.Message != "" {
		message += ": " + said.Message
	}
	return status.Error(codeOf(response.StatusCode, said.Code), message)
}

// codeOf returns the code for an HTTP status and a code of the cloud.
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
