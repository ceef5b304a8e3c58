/** The end of a name that is always shown: usually a number and the extension. Characters. */
const endLength = 9
/** Shorter names are shortened at the end. Characters. */
const shortest = 15

/** A name that is shortened in the middle if there is not enough space. Screen readers read the whole name. */
export function MiddleName({ name, class: extra = '' }: { name: string; class?: string }) {
  const characters = [...name]
  if (characters.length < shortest)
    return (
      <span class={`short-name ${extra}`} title={name}>
        {name}
      </span>
    )
  return (
    <span class={`middle-name ${extra}`} title={name}>
      <span class="whole-name">{name}</span>
      <span class="middle-name-start" aria-hidden="true">
        {characters.slice(0, -endLength).join('')}
      </span>
      <span class="middle-name-end" aria-hidden="true">
        {characters.slice(-endLength).join('')}
      </span>
    </span>
  )
}
