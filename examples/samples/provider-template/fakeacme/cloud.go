// SPDX-License-Identifier: Apache-2.0

// Package fakeacme simulates the Acme cloud in memory, for tests.
package fakeacme

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// Token is the credential that the cloud accepts.
const Token = "a token for tests"

// Server is one server.
type Server struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Address string            `json:"address"`
}

// Cloud serves the API of the cloud. The zero Cloud is empty. It is safe for use by multiple
// goroutines.
type Cloud struct {
	mu       sync.Mutex
	made     int
	projects map[string][]Server
}

// Servers returns the servers of a project.
func (c *Cloud) Servers(project string) []Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Server(nil), c.projects[project]...)
}

// ServeHTTP implements http.Handler.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/projects/{project}/servers", c.create)
	mux.HandleFunc("GET /v1/projects/{project}/servers", c.list)
	mux.HandleFunc("GET /v1/projects/{project}/servers/{id}", c.get)
	mux.HandleFunc("DELETE /v1/projects/{project}/servers/{id}", c.remove)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		fail(w, http.StatusUnauthorized, "TokenUnknown", "the token is not known")
		return
	case r.Method != http.MethodPost && r.ContentLength != 0:
		fail(w, http.StatusBadRequest, "BodyRefused", "only POST has a body")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mux.ServeHTTP(w, r)
}

func (c *Cloud) create(w http.ResponseWriter, r *http.Request) {
	var s Server
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil || s.Name == "" {
		fail(w, http.StatusBadRequest, "NameMissing", "a server needs a name")
		return
	}
	project := r.PathValue("project")
	for _, other := range c.projects[project] {
		if other.Name == s.Name {
			fail(w, http.StatusConflict, "NameExists", "a server of this name exists")
			return
		}
	}
	c.made++
	s.ID, s.Address = fmt.Sprint(c.made), fmt.Sprintf("10.0.%d.%d", c.made/250, c.made%250+1)
	if c.projects == nil {
		c.projects = map[string][]Server{}
	}
	c.projects[project] = append(c.projects[project], s)
	answer(w, http.StatusCreated, s)
}

func (c *Cloud) list(w http.ResponseWriter, r *http.Request) {
	found := []Server{}
	for _, s := range c.projects[r.PathValue("project")] {
		if name := r.URL.Query().Get("name"); name == "" || name == s.Name {
			found = append(found, s)
		}
	}
	answer(w, http.StatusOK, found)
}

func (c *Cloud) get(w http.ResponseWriter, r *http.Request) {
	for _, s := range c.projects[r.PathValue("project")] {
		if s.ID == r.PathValue("id") {
			answer(w, http.StatusOK, s)
			return
		}
	}
	fail(w, http.StatusNotFound, "ServerNotFound", "no such server")
}

func (c *Cloud) remove(w http.ResponseWriter, r *http.Request) {
	project := r.PathValue("project")
	for i, s := range c.projects[project] {
		if s.ID == r.PathValue("id") {
			c.projects[project] = append(c.projects[project][:i:i], c.projects[project][i+1:]...)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	fail(w, http.StatusNotFound, "ServerNotFound", "no such server")
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client sees an incomplete body
}

func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]string{"code": code, "message": message})
}
