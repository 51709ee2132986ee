// SPDX-License-Identifier: Apache-2.0

package acme

import (
	"errors"
	"sync"
)

var (
	errNoServer = errors.New("404: no such server")
	errQuota    = errors.New("429: quota exceeded")
)

// Cloud is the API of the Acme cloud.
type Cloud struct {
	mu      sync.Mutex
	servers map[string]string // name of the machine by ID
	Quota   int
}

// NewCloud returns a cloud with room for three servers.
func NewCloud() *Cloud { return &Cloud{servers: map[string]string{}, Quota: 3} }

func (c *Cloud) create(name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.servers) >= c.Quota {
		return "", errQuota
	}
	id := "acme:///" + name
	c.servers[id] = name
	return id, nil
}

func (c *Cloud) remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers["acme:///"+name] == "" {
		return errNoServer
	}
	delete(c.servers, "acme:///"+name)
	return nil
}

func (c *Cloud) list() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]string{}
	for id, name := range c.servers {
		all[id] = name
	}
	return all
}
