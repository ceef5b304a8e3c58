import { onTestFinished } from 'vitest'
import { until } from './until.ts'
import { parseChange } from './wire.ts'

/** An event of a stream, as it was sent. */
interface ServerEvent {
  readonly id: string
  readonly change: ReturnType<typeof parseChange>
}

/** Reads Server-Sent Events in the background. The connection is closed when the test ends. */
export function readEvents(response: Response) {
  const decoder = new TextDecoder()
  const events: ServerEvent[] = []
  const state = { lastId: '', retry: '', text: '', hasEnded: false, error: null as unknown }
  let rest = ''

  function accept(block: string): void {
    const fields = new Map(block.split('\n').map((line) => line.split(/: ?(.*)/s) as [string, string]))
    const [id, data] = [fields.get('id'), fields.get('data')]
    state.retry = fields.get('retry') ?? state.retry
    state.lastId = id ?? state.lastId
    if (data !== undefined) events.push({ id: state.lastId, change: parseChange(data) })
  }

  async function readAll(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const text = decoder.decode(read.value, { stream: true })
      state.text += text
      const blocks = (rest + text).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) accept(block)
    }
    state.hasEnded = true
  }

  const { body } = response
  if (body === null) throw new Error('the response has no body')
  const reader = body.getReader()
  onTestFinished(() => reader.cancel().catch(() => undefined))
  void readAll(reader).catch((error: unknown) => {
    state.error = error
  })
  return {
    events,
    state,
    /** The events, as soon as there are so many. */
    async first(count: number): Promise<readonly ServerEvent[]> {
      await until(`${count} events`, () => events.length >= count || state.hasEnded || state.error !== null)
      return events
    },
    end: () => until('the end of the stream', () => state.hasEnded || state.error !== null),
  }
}
