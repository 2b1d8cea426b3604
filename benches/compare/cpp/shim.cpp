// The queues in C++ as functions of C. An end holds what one thread needs: the queue, and a token if it has one.

#include <concurrentqueue/concurrentqueue.h>
#include <cstddef>
#include <cstdint>
#include <tbb/concurrent_queue.h>

using Moodycamel = moodycamel::ConcurrentQueue<std::uint64_t>;
using Tbb = tbb::concurrent_queue<std::uint64_t>;

extern "C" {

Moodycamel *moodycamel_new() { return new Moodycamel(); }
void moodycamel_delete(Moodycamel *queue) { delete queue; }

moodycamel::ProducerToken *moodycamel_producer_new(Moodycamel *queue) { return new moodycamel::ProducerToken(*queue); }
void moodycamel_producer_delete(moodycamel::ProducerToken *token) { delete token; }
moodycamel::ConsumerToken *moodycamel_consumer_new(Moodycamel *queue) { return new moodycamel::ConsumerToken(*queue); }
void moodycamel_consumer_delete(moodycamel::ConsumerToken *token) { delete token; }

bool moodycamel_push(Moodycamel *queue, const moodycamel::ProducerToken *token, std::uint64_t item) {
    return token ? queue->enqueue(*token, item) : queue->enqueue(item);
}

bool moodycamel_push_bulk(Moodycamel *queue, const moodycamel::ProducerToken *token, const std::uint64_t *items,
                          std::size_t count) {
    return token ? queue->enqueue_bulk(*token, items, count) : queue->enqueue_bulk(items, count);
}

std::size_t moodycamel_pop_bulk(Moodycamel *queue, moodycamel::ConsumerToken *token, std::uint64_t *items,
                                std::size_t max) {
    return token ? queue->try_dequeue_bulk(*token, items, max) : queue->try_dequeue_bulk(items, max);
}

bool moodycamel_pop(Moodycamel *queue, moodycamel::ConsumerToken *token, std::uint64_t *item) {
    return token ? queue->try_dequeue(*token, *item) : queue->try_dequeue(*item);
}

Tbb *tbb_new() { return new Tbb(); }
void tbb_delete(Tbb *queue) { delete queue; }
void tbb_push(Tbb *queue, std::uint64_t item) { queue->push(item); }
bool tbb_pop(Tbb *queue, std::uint64_t *item) { return queue->try_pop(*item); }

}
