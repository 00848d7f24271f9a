// SPDX-License-Identifier: 0BSD
//
// Connections in a vector, each with an idle timeout: <twheel.hpp>.
#include <cstdio>
#include <vector>
#include <twheel.hpp>

using namespace std::chrono_literals;

class conn {
	int number;
	void on_idle() { std::printf("connection %d is idle\n", number); }
	libtwheel::member_timer<&conn::on_idle> idle;

public:
	conn(libtwheel::wheel &w, int its_number) : number(its_number), idle(w, this)
	{
		idle.start(100ms);
	}
	void on_data() { idle.start(300ms); }		// restarts it as well
};

int main()
{
	libtwheel::wheel w;
	std::vector<conn> conns;

	for (int i = 0; i < 4; i++)
		conns.emplace_back(w, i);		// the vector moves them when it grows
	conns[1].on_data();
	conns.erase(conns.begin());			// stops its timer

	int left = static_cast<int>(conns.size());
	while (left)
		left -= w.wait();
}
