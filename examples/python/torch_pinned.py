# expect: exit 1, inter-kernel
# Copies that do not wait: the host reads what has not arrived yet, and writes what has not left.
import torch

x = torch.arange(4096.0, device="cuda") * 2

y = x.to("cpu", non_blocking=True)  # race
print(y.sum())  # race

# A buffer in pinned memory is used again for the next batch.
buffer = torch.zeros(4096).pin_memory()
first = buffer.to("cuda", non_blocking=True)  # race
buffer.fill_(1)  # race
second = buffer.to("cuda", non_blocking=True)
print((first + second).sum().item())
