package explain

import "fencepost.dev/fencepost/internal/event"

// Addresses by which the shared memory of launches with clusters is told: from peerBase on a launch, of 8 bits, a cluster, of 23, 1
// plus the rank of a block in it, of 5, and the offset, of event.PeerShift. No device has memory there.
const (
	peerBase    = 1 << 60
	launchShift = 52
	clusterBits = 23
	// PeerBytes is how many addresses a cluster has.
	PeerBytes = 1 << (event.PeerShift + 5)
)

// PeerBase is the first address of a cluster of a launch.
func PeerBase(launch, cluster uint32) uint64 {
	return peerBase + uint64(launch&0xff)<<launchShift + uint64(cluster%(1<<clusterBits))*PeerBytes
}

// ofPeer tells what an address is of.
func ofPeer(address uint64) (cluster, rank uint32, offset uint64) {
	return uint32(address / PeerBytes % (1 << clusterBits)), uint32(address>>event.PeerShift&31) - 1, address % (1 << event.PeerShift)
}

// OfPeer gives the rank of the block in its cluster whose shared memory an address is of, and where it is there; false for other addresses.
func OfPeer(address uint64) (rank uint32, at uint64, ok bool) {
	if address < peerBase {
		return 0, 0, false
	}
	_, rank, at = ofPeer(address)
	return rank, at, true
}
