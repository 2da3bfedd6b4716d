// Layout of the scratch memory of a kernel.
#include "plan/kernel.hpp"

#include "base/checked.hpp"

namespace ashlar {

namespace {

std::int64_t align(std::int64_t bytes) {
  return checked_add(bytes, kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace

int ScratchLayout::add(std::string name, std::int64_t bytes) {
  reservations_.push_back({std::move(name), total_, bytes});
  total_ = checked_add(total_, align(bytes));
  return static_cast<int>(reservations_.size()) - 1;
}

void ScratchLayout::spread(std::int64_t gap) {
  total_ = 0;
  for (Reservation& reservation : reservations_) {
    reservation.offset = checked_add(total_, align(gap));
    total_ = checked_add(checked_add(reservation.offset, align(reservation.bytes)), align(gap));
  }
}

}  // namespace ashlar
