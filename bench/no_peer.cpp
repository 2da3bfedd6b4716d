// The peer interface of a build without oneDNN: there is no peer.
#include "peer.hpp"

namespace ashlar::bench {

std::unique_ptr<Peer> fastest_peer(const PeerProblem&, PeerLayouts) { return nullptr; }

std::string peer_version() { return {}; }

}  // namespace ashlar::bench
