import { useEffect, useRef, useState } from 'preact/hooks'
import { useGallery } from '../gallery-context.ts'
import { pageNumberOf } from '../router.ts'
import { strings } from '../strings.ts'

/** A field to go to a page by its number, for buckets with many pages. */
export function PageJump({ current, last }: { current: number; last: number }) {
  const { router, notices } = useGallery()
  const input = useRef<HTMLInputElement>(null)
  const [invalid, setInvalid] = useState(false)
  useEffect(() => {
    setInvalid(false)
    if (input.current) input.current.value = String(current)
  }, [current])
  return (
    <form
      class="page-jump"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        const page = pageNumberOf(input.current?.value ?? '')
        const valid = page !== null && page <= last
        setInvalid(!valid)
        if (valid) router.go({ page, item: null })
        else notices.show(strings.pager.range(last))
        input.current?.select()
      }}
    >
      <label for="page-jump">{strings.pager.jump}</label>
      <input
        ref={input}
        id="page-jump"
        inputMode="numeric"
        autocomplete="off"
        enterkeyhint="go"
        size={Math.max(3, String(last).length)}
        aria-invalid={invalid}
        onFocus={(event) => event.currentTarget.select()}
      />
      <span>{strings.pager.of(last)}</span>
      <button type="submit" class="off-screen">
        {strings.pager.go}
      </button>
    </form>
  )
}
