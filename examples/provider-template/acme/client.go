// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	ID       string `json:"id"`
	Name     string `json:"name"`
	Address  string `json:"address,omitempty"`
	Type     string `json:"type,omitempty"`
	Image    string `json:"image,omitempty"`
	UserData string `json:"userData,omitempty"`
}

// client makes requests to the cloud for one project.
type client struct {
	http  *http.Client
	spec  ProviderSpec
	token string
}

// create creates a server. The cloud keeps names unique in a project: for one that exists, the
// code is errConflict.
func (c *client) create(ctx context.Context, s server) (server, error) {
	var made server
	err := c.do(ctx, http.MethodPost, nil, s, &made)
	return made, err
}

// byName returns the server with a name, or NotFound.
func (c *client) byName(ctx context.Context, name string) (server, error) {
	var found []server
	if err := c.do(ctx, http.MethodGet, url.Values{"name": {name}}, nil, &found); err != nil {
		return server{}, err
	}
	if len(found) == 0 {
		return server{}, status.Error(codes.NotFound, fmt.Sprintf("no server %q in project %q", name, c.spec.Project))
	}
	return found[0], nil
}

// byID returns the server with an ID, or NotFound.
func (c *client) byID(ctx context.Context, id string) (server, error) {
	var found server
	err := c.do(ctx, http.MethodGet, nil, nil, &found, id)
	return found, err
}

// list returns all servers of the project.
func (c *client) list(ctx context.Context) (all []server, err error) {
	return all, c.do(ctx, http.MethodGet, nil, nil, &all)
}

// remove deletes a server. The cloud answers when it has accepted the deletion.
func (c *client) remove(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, nil, nil, nil, id)
}

// errConflict says that a server of this name exists.
var errConflict = errors.New("a server of this name exists")

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
	target, err := url.JoinPath(c.spec.Endpoint, append([]string{"v1", "projects", url.PathEscape(c.spec.Project), "servers"}, path...)...)
	if err != nil {
		return status.WrapError(codes.InvalidArgument, "endpoint: "+err.Error(), err)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return status.WrapError(codes.Internal, err.Error(), err)
	}
	request, err := http.NewRequestWithContext(ctx, method, target+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return status.WrapError(codes.InvalidArgument, "endpoint: "+err.Error(), err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return status.WrapError(codes.Unavailable, "the cloud does not answer: "+err.Error(), err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
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

// failure returns the error of an answer. A status that is not known is worth another try: the
// controllers delete because of NotFound, so nothing else may look like it.
func failure(response *http.Response, answer []byte) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &said) // what is no JSON has no message
	message := response.Status
	if said.Message != "" {
		message += ": " + said.Message
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return status.Error(codes.InvalidArgument, message)
	case http.StatusUnauthorized:
		return status.Error(codes.Unauthenticated, message)
	case http.StatusForbidden:
		return status.Error(codes.PermissionDenied, message)
	case http.StatusNotFound:
		return status.Error(codes.NotFound, message)
	case http.StatusConflict:
		return errConflict
	case http.StatusTooManyRequests, http.StatusInsufficientStorage:
		return status.Error(codes.ResourceExhausted, message)
	default:
		return status.Error(codes.Unavailable, message)
	}
}
