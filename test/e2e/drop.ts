import type { Page } from 'playwright-core'

/** Drags files and folders over the page, calls `whileOver` when the page shows that it has noticed them, and drops them. */
export async function drop(
  page: Page,
  files: readonly string[],
  whileOver: () => Promise<void> = async () => undefined,
): Promise<void> {
  const tools = await page.context().newCDPSession(page)
  const data = { items: [], files: [...files], dragOperationsMask: 1 }
  const send = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    tools.send('Input.dispatchDragEvent', { type, x: 200, y: 300, data })
  await send('dragEnter')
  await send('dragOver')
  await page.locator('.drop-zone').waitFor()
  await whileOver()
  // Browsers repeat it while the pointer is over the page. The last one decides whether the page accepts the drop.
  await send('dragOver')
  await send('drop')
  await tools.detach()
}
