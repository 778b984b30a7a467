package mcpserver

import "slices"

// Open counts the clients over HTTP, and all their transport sessions.
func (s *Server) Open() (clients, transports int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		transports += len(slices.Collect(c.server.Sessions()))
	}
	return len(s.clients), transports
}
