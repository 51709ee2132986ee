// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// A Client is the driver that a [Handler] serves. It is also a [driver.SideResourceDeleter],
// which returns Unimplemented if the served driver is none.
//
// Its own errors are Unavailable if the server or its response is lost, Canceled or
// DeadlineExceeded if the context ended, InvalidArgument if the request has no JSON form, and
// Internal if another server answers. Except for InvalidArgument, and for a context that had
// ended before the call, the operation may have happened.
//
// A canceled call waits up to two seconds for the response of the driver. A success, or an
// error with a code, is returned.
//
// A Client keeps connections open. After a restart of the server a call on an old connection
// may be Unavailable. A Client is safe for use by multiple goroutines. Every call of a nil or
// zero Client is Internal.
type Client struct {
	base string
	http *http.Client
}

var (
	_ driver.Driver              = (*Client)(nil)
	_ driver.SideResourceDeleter = (*Client)(nil)
)

// Dial returns the driver that is served at a URL such as http://127.0.0.1:8484. It does not
// connect.
//
// The scheme is http, and the host is a loopback address or localhost, because Secrets are not
// encrypted. A path is the prefix of /v1. A URL with a user, a query or a fragment is an error.
// Proxies are not used, and redirects are not followed.
func Dial(address string) (*Client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("cloud: the address is not a URL") // which may hold a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" || u.Hostname() == "":
		return nil, fmt.Errorf("cloud: the address %q is not of the form http://127.0.0.1:8484", u.Redacted())
	case u.Scheme != "http":
		return nil, fmt.Errorf("cloud: the scheme of %q is not http", u.Redacted())
	case !loopback(u.Hostname()):
		return nil, fmt.Errorf("cloud: Secrets would cross the network in the clear to %q, which is no loopback address", u.Host)
	}
	return &Client{
		base: strings.TrimSuffix(u.String(), "/") + prefix,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
				MaxIdleConnsPerHost: 64,
				IdleConnTimeout:     30 * time.Second,
				DisableCompression:  true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// loopback reports whether a host is the local one.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// Close closes the idle connections. The Client can still be used. Without Close an idle
// connection is closed after 30s.
func (c *Client) Close() {
	if c != nil && c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// CreateMachine implements [driver.Driver].
func (c *Client) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return call[driver.CreateMachineResponse](ctx, c, driver.OpCreateMachine, (*ofMachine)(req).request())
}

// InitializeMachine implements [driver.Driver].
func (c *Client) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return call[driver.InitializeMachineResponse](ctx, c, driver.OpInitializeMachine, (*ofMachine)(req).request())
}

// DeleteMachine implements [driver.Driver].
func (c *Client) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return call[driver.DeleteMachineResponse](ctx, c, driver.OpDeleteMachine, (*ofMachine)(req).request())
}

// GetMachineStatus implements [driver.Driver].
func (c *Client) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return call[driver.GetMachineStatusResponse](ctx, c, driver.OpGetMachineStatus, (*ofMachine)(req).request())
}

// ListMachines implements [driver.Driver].
func (c *Client) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return call[driver.ListMachinesResponse](ctx, c, driver.OpListMachines, (*ofClass)(req).request())
}

// GetVolumeIDs implements [driver.Driver].
func (c *Client) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return call[driver.GetVolumeIDsResponse](ctx, c, driver.OpGetVolumeIDs, (*ofVolumes)(req).request())
}

// ListSideResources implements [driver.SideResourceLister].
func (c *Client) ListSideResources(ctx context.Context, req *driver.ListSideResourcesRequest) (*driver.ListSideResourcesResponse, error) {
	return call[driver.ListSideResourcesResponse](ctx, c, driver.OpListSideResources, (*ofClass)(req).request())
}

// DeleteSideResource implements [driver.SideResourceDeleter].
func (c *Client) DeleteSideResource(ctx context.Context, req *driver.DeleteSideResourceRequest) (*driver.DeleteSideResourceResponse, error) {
	return call[driver.DeleteSideResourceResponse](ctx, c, driver.OpDeleteSideResource, (*ofResource)(req).request())
}

// call sends an operation to the server and returns its result.
func call[R any](ctx context.Context, c *Client, op driver.Operation, q *request) (*R, error) {
	if c == nil || c.http == nil {
		return nil, status.Error(codes.Internal, "the Client has no address; Dial gives it one")
	}
	if err := ctx.Err(); err != nil {
		return nil, gaveUp(op, err)
	}
	body, err := q.encode()
	if err != nil {
		return nil, err
	}
	ok, body, err := c.post(ctx, op, body)
	switch {
	case err != nil:
		return nil, err
	case ok:
		var response *R
		if err := json.Unmarshal(body, &response); err != nil {
			return nil, garbled(op, err)
		}
		return response, nil
	}
	f := failure[R]{Code: codes.Unknown}
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, garbled(op, err)
	}
	err = f.err()
	if ended := ctx.Err(); ended != nil && (f.Code == codes.Canceled || f.Code == codes.DeadlineExceeded) {
		err = gaveUp(op, ended) // why the context ended is known here
	}
	return f.Response, err
}

// post sends a request. It returns the body of a Handler, and whether it is a response.
func (c *Client) post(ctx context.Context, op driver.Operation, body []byte) (ok bool, answer []byte, err error) {
	x, lasting := begin(ctx)
	defer x.end()
	r, err := http.NewRequestWithContext(lasting, http.MethodPost, c.base+string(op), bytes.NewReader(body))
	if err != nil {
		return false, nil, status.WrapError(codes.Internal, fmt.Sprintf("%s cannot be asked for", op), err)
	}
	r.Header.Set("Content-Type", "application/json")
	if deadline, ok := ctx.Deadline(); ok {
		r.Header.Set(timeoutHeader, time.Until(deadline).String())
	}
	w, err := c.http.Do(r)
	if err != nil {
		return false, nil, lost(ctx, op, err)
	}
	defer w.Body.Close() //nolint:errcheck // nothing was written
	switch {
	case w.Header.Get("Content-Type") != mediaType || w.ContentLength < 1:
		return false, nil, status.Error(codes.Internal, fmt.Sprintf("%s: no driver is served at this address: status %d", op, w.StatusCode))
	case w.ContentLength > MaxAnswerBytes:
		return false, nil, tooLarge()
	}
	if answer, err = x.read(w); err != nil {
		return false, nil, lost(ctx, op, err)
	}
	return w.StatusCode == http.StatusOK, answer, nil
}

// read returns a body, which ends with a line feed. After the line feed the connection is free
// for other calls, so read stops before it if the call was canceled.
func (x *exchange) read(w *http.Response) ([]byte, error) {
	answer := make([]byte, w.ContentLength)
	last := len(answer) - 1
	if _, err := io.ReadFull(w.Body, answer[:last]); err != nil {
		return nil, err
	}
	if !x.settle() {
		return answer[:last], nil
	}
	_, err := io.ReadFull(w.Body, answer[last:])
	return answer, err
}

// lost returns the error of a call without a response.
func lost(ctx context.Context, op driver.Operation, err error) error {
	if ended := ctx.Err(); ended != nil {
		return gaveUp(op, ended)
	}
	return status.WrapError(codes.Unavailable, fmt.Sprintf("%s got no answer: %s", op, err), err)
}

// gaveUp returns the error of a call whose context has ended.
func gaveUp(op driver.Operation, ended error) error {
	return status.WrapError(codes.Of(ended), fmt.Sprintf("%s was given up: %s", op, ended), ended)
}

// garbled returns the error of an invalid response.
func garbled(op driver.Operation, err error) error {
	return status.WrapError(codes.Internal, fmt.Sprintf("the answer to %s cannot be read", op), err)
}
