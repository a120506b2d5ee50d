package explain

import "fencepost.dev/fencepost/internal/event"

// Shared memory of launches with clusters has special addresses, from peerBase on, where no device has memory. From
// high to low bits: the launch (8 bits), the cluster (23 bits), one more than the rank of the block in the cluster (5
// bits), and the offset (event.PeerShift bits).
const (
	peerBase    = 1 << 60
	launchShift = 52
	clusterBits = 23
	// PeerBytes is the number of addresses of a cluster.
	PeerBytes = 1 << (event.PeerShift + 5)
)

// PeerBase returns the first address of a cluster of a launch.
func PeerBase(launch, cluster uint32) uint64 {
	return peerBase + uint64(launch&0xff)<<launchShift + uint64(cluster%(1<<clusterBits))*PeerBytes
}

// ofPeer splits such an address.
func ofPeer(address uint64) (cluster, rank uint32, offset uint64) {
	return uint32(address / PeerBytes % (1 << clusterBits)), uint32(address>>event.PeerShift&31) - 1, address % (1 << event.PeerShift)
}

// OfPeer returns the rank of the block whose shared memory contains an address, and the offset there. ok is false for
// other addresses.
func OfPeer(address uint64) (rank uint32, at uint64, ok bool) {
	if address < peerBase {
		return 0, 0, false
	}
	_, rank, at = ofPeer(address)
	return rank, at, true
}
