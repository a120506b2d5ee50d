package warp
