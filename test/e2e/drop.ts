import type { Page } from 'playwright-core'

/** Drags files and folders over the page, calls `whileOver` when the page shows that it has noticed them, and drops them. */
export async function drop(
  page: Page,
  files: readonly string[],
  whileOver: () => Promise<void> = async () => undefined,
): Promise<void> {
  await dropAt(page, { x: 200, y: 300 }, files, async () => {
    await page.locator('.drop-zone').waitFor()
    await whileOver()
  })
}

/** As `drop`, at a point of any page. */
export async function dropAt(
  page: Page,
  { x, y }: { readonly x: number; readonly y: number },
  files: readonly string[],
  whileOver: () => Promise<void>,
): Promise<void> {
  const tools = await page.context().newCDPSession(page)
  const data = { items: [], files: [...files], dragOperationsMask: 1 }
  const send = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    tools.send('Input.dispatchDragEvent', { type, x, y, data })
  await send('dragEnter')
  await send('dragOver')
  await whileOver()
  // Browsers repeat it while the pointer is over the page. The last one decides whether the page accepts the drop.
  await send('dragOver')
  await send('drop')
  await tools.detach()
}
