/**
 * Puts text on the clipboard. Browsers give pages without TLS no Clipboard API; there a selected field is copied as if
 * by hand. The field must be inside the open dialog, since the rest of the page cannot be selected then.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyByField(text)
  }
}

function copyByField(text: string): boolean {
  const focused = document.activeElement
  const field = document.createElement('textarea')
  field.className = 'off-screen'
  field.value = text
  field.readOnly = true
  const dialogs = document.querySelectorAll('dialog[open]')
  ;(dialogs[dialogs.length - 1] ?? document.body).append(field)
  field.select()
  try {
    return document.execCommand('copy')
  } catch {
    return false
  } finally {
    field.remove()
    if (focused instanceof HTMLElement) focused.focus()
  }
}
