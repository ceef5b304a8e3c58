/** Finds out which pages of this browser are open, so that a page takes over the uploads of closed pages only. */
export interface OpenPages {
  /** Those of the pages that are closed. */
  closedAmong(pages: Iterable<string>): Promise<ReadonlySet<string>>
  close(): void
}

/** `ask`: is this page open? `here`: this page is open. */
interface Message {
  readonly type: 'ask' | 'here'
  readonly page: string
}

/** An open page responds within this time. Milliseconds. */
const responseTime = 300

/** `own` is the id of this page. */
export function createOpenPages(own: string): OpenPages {
  const channel = new BroadcastChannel('mediabucket-uploads')
  const open = new Set<string>()
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'here') open.add(data.page)
    else if (data.page === own) channel.postMessage({ type: 'here', page: own } satisfies Message)
  }
  return {
    async closedAmong(pages) {
      const closed = new Set(pages)
      if (closed.size === 0) return closed
      for (const page of closed) channel.postMessage({ type: 'ask', page } satisfies Message)
      await new Promise((resolve) => setTimeout(resolve, responseTime))
      for (const page of open) closed.delete(page)
      return closed
    },
    close: () => channel.close(),
  }
}
