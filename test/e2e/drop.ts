import type { Page } from 'playwright-core'

/** Drags files and folders over the page, calls `whileOver`, and drops them. */
export async function drop(
  page: Page,
  files: readonly string[],
  whileOver: () => Promise<void>,
): Promise<void> {
  const tools = await page.context().newCDPSession(page)
  const data = { items: [], files: [...files], dragOperationsMask: 1 }
  for (const type of ['dragEnter', 'dragOver'] as const) {
    await tools.send('Input.dispatchDragEvent', { type, x: 200, y: 300, data })
  }
  await whileOver()
  await tools.send('Input.dispatchDragEvent', { type: 'drop', x: 200, y: 300, data })
  await tools.detach()
}
