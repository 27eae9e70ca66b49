"""Recognise the names of people by their context: introductions, titles, relations, greetings, and what people do."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import cache
from typing import Final

from longspan.simulator.filler.wordnet import load_wordnet

__all__ = ["NAME_WORD", "find_names", "is_also_a_word"]

NAME_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W\d_]+)*")

_CAPITAL: Final = r"(?-i:[^\W\d_a-zà-öø-ÿąćęłńóśźżа-яёα-ω])"
# A bound, because a long chain of hyphens would be tried from each of its parts.
_PART: Final = rf"{_CAPITAL}[^\W_]*(?:['’-][^\W\d_]+){{0,4}}"
_PARTICLE: Final = r"(?:de la|de|van der|van den|van|von|der|den|da|di|del|dos|du|bin|ibn|al|el|ter|ten)"
_FULL: Final = rf"(?P<name>{_PART}(?: (?:{_PARTICLE} )?{_PART}){{0,3}})"

_INTRODUCES: Final = (
    r"(?:my|his|her|its|their|our|the|whose)?\s?(?:\w+['’]s )?(?:first |last |full |real |maiden )?names? (?:is|are|was)"
    r"|names?['’]s|(?:is|are|was|s|get) called|called|named"
    r"|nicknamed|call me|(?:my|our) name[:=]|name ?[:=]|je m['’]appelle|s['’]appelle|mon nom est|ich hei(?:ß|ss)e|hei(?:ß|ss)t"
    r"|mein name ist"
    r"|me llamo|se llama|mi nombre es|mi chiamo|si chiama|il mio nome è|me chamo|se chama|meu nome é|ik heet|heet|mijn naam is"
    r"|jag heter|heter"
    r"|jeg hedder|hedder|nazywam się|mam na imię|меня зовут|зовут|benim adım|adım"
)
_TITLES: Final = (
    r"mr|mrs|ms|mx|miss|dr|prof|professor|doctor|sir|madam|herr|frau|señora?|sra?|don|doña|monsieur|madame|mme|mlle|signor|signora|sig"
    r"|dhr|mevr|pan|pani|rev|reverend|father|sister|rabbi|imam|captain|sergeant|officer|judge|senator|coach|nurse|aunt|auntie"
    r"|aunty|uncle|cousin"
    r"|grandma|grandpa|granny|nana|nanna|tante|onkel|oma|opa|tía|tío|abuela|abuelo|tonton|mamie|papi"
)
_TITLE: Final = re.compile(rf"(?:{_TITLES})\.?", re.IGNORECASE)
_RELATIONS: Final = (
    r"husband|wife|spouse|partner|fianc[ée]e?|boyfriend|girlfriend|ex|son|daughter|child|kid|baby|toddler|brother|sister|sibling"
    r"|twin|mother|mom|mum|father"
    r"|dad|uncle|aunt|cousin|nephew|niece|grandson|granddaughter|grandmother|grandfather|grandma|grandpa|stepson|stepdaughter"
    r"|stepmother|stepfather"
    r"|mother-in-law|father-in-law|brother-in-law|sister-in-law|godson|goddaughter|friend|buddy|bestie|mate|roommate|flatmate"
    r"|housemate|neighbou?r|boss"
    r"|manager|supervisor|colleague|co-?worker|teammate|assistant|intern|mentor|client|customer|patient|student|classmate|teacher"
    r"|tutor|coach|trainer"
    r"|instructor|professor|doctor|dentist|therapist|nurse|midwife|vet|lawyer|attorney|accountant|agent|landlord|landlady|tenant"
    r"|nanny|babysitter"
    r"|cleaner|plumber|electrician|contractor|gardener|hairdresser|barber|chef|waiter|driver|dog|cat|puppy|kitten|pup|pet|horse"
    r"|pony|hamster|rabbit"
    r"|bunny|parrot|budgie|goldfish|tortoise|turtle|hermano|hermana|hijo|hija|esposo|esposa|marido|mujer|novio|novia|amigo|amiga"
    r"|madre|padre|mamá|papá"
    r"|primo|prima|jefe|jefa|frère|sœur|soeur|mari|femme|fils|fille|ami|amie|copain|copine|mère|père|oncle|cousine|bruder"
    r"|schwester|mann|sohn|tochter"
    r"|freund|freundin|mutter|vater|chef|chefin|kollege|kollegin|nachbar|nachbarin|fratello|sorella|marito|moglie|figlio|figlia"
    r"|amico|amica|irmão|irmã"
    r"|filho|filha|namorado|namorada|broer|zus|zoon|dochter|vriend|vriendin|moeder|vader|брат|сестра|муж|жена|сын|дочь|друг|подруга"
)
_OWNER: Final = (
    r"(?:my|our|his|her|their|your|the|a|an|mi|mis|mon|ma|mes|notre|mein|meine|meinen|meiner|unser|unsere|mio|mia|il|la|meu|minha|mijn"
    r"|мой|моя)"
)

_STRONG: Final = [
    re.compile(rf"(?<!\w)(?:{trigger}) {_FULL}", re.IGNORECASE)
    for trigger in (
        _INTRODUCES,
        rf"(?:{_TITLES})\.?",
        rf"{_OWNER} (?:\w+ ){{0,2}}?(?:{_RELATIONS}),?",
        r"(?:best|kind|warm|kindest|warmest)? ?(?:regards|wishes)|sincerely|yours (?:truly|faithfully)",
    )
]
_WEAK: Final = [
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?:^|[.!?,\n] ?|[\"“(])(?:hi|hello|hey|dear|thanks|thank you|cheers|hola|hallo|bonjour|salut|ciao|olá|привет|love|best"
        rf"|regards|sincerely),?[ \n]{_FULL}(?=\s?[,.!?\n)]|$| and\b)",
        rf"(?<!\w)(?:i['’]m|i am|this is|it['’]s|here is) {_FULL}(?=[,.!]| from\b| and\b| again\b| here\b|$)",
        rf"(?<!\w)(?:told|asked|met|meet|call|remind|tell|ask|thank|invite|invited|visit|text|texted|email|emailed|married|marry"
        rf"|hug|contact:?|ask for|dinner with|lunch with"
        rf"|date with|meeting with|(?:email|letter|invoice|message|call|note|card|gift|present)s? (?:to|for|from)"
        rf"|send .{{0,30}}? to|are with) {_FULL}",
        rf"(?<!\w){_FULL}['’]s (?!been\b|not\b|going\b)",
        rf"(?<!\w){_FULL} and (?:i|me|my)\b",
        rf"(?<!\w)(?:me|i|my \w+) and {_FULL}",
        rf"(?<!\w){_FULL},? (?:said|says|told (?:me|us|him|her)|asked (?:me|us|if|for|about|whether)|thinks|wants|wanted"
        rf"|called me|texted|loves|loved|hates|hated|likes|promised|invited"
        rf"|(?:is|was) my|(?:just )?turned \d|got (?:married|engaged|promoted)|passed away|he is|she is|who is my)\b",
        rf"(?<!\w){_FULL} ?<(?=[\w.+-]+@)",
    )
]
_CHINESE: Final = re.compile(r"(?:我叫|名字叫|名字是|名叫|叫做|我是)(?P<name>[\u4e00-\u9fff]{2,4}?)(?=[，,。.!！、\s]|$)")
_JAPANESE: Final = re.compile(r"(?:私の名前は|私は)(?P<name>[\u3040-\u30ff\u4e00-\u9fff]{2,8}?)(?=です|と申します|といいます)")

_NEVER: Final = frozenset(
    """just let everything everyone everybody anyone nobody somebody someone something nothing really actually maybe well sure wow oh ah
    yeah yep nope sorry great good nice cool awesome amazing first last next new old all both each some any many most other another such
    only even still yet ever never always often again too very much more less as at by for from in into of off on onto out over to up
    with without about after before between during through under while until since
    january february march april may june july august september october november december monday tuesday wednesday thursday friday
    saturday sunday jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun i ok okay yes no not please thanks thank
    hi hello hey dear the a an my your his her its our their this that these those it he she we they you there here what who when where why
    how which and but or if so because however also then than today tomorrow yesterday tonight now christmas easter halloween thanksgiving
    hanukkah ramadan diwali eid mom mum dad mother father grandma grandpa god english german french spanish italian portuguese dutch
    swedish norwegian danish finnish polish russian ukrainian czech greek turkish arabic hebrew hindi bengali urdu chinese mandarin
    cantonese japanese korean vietnamese thai indian american british irish scottish welsh canadian australian mexican brazilian african
    asian european muslim christian jewish catholic hindu buddhist google apple amazon microsoft facebook meta instagram whatsapp telegram
    slack zoom discord twitter netflix spotify youtube openai anthropic chatgpt claude gemini siri alexa copilot python java javascript
    typescript rust go linux windows macos android iphone github gitlab docker kubernetes excel word outlook gmail notion jira paypal visa
    mastercard ikea uber airbnb sql html css json api url http https pdf ai llm ceo cto hr it pc tv uk us usa eu nyc la""".split()
)
"""Capitalised words that are hardly ever names of people."""

_ALSO_WORDS: Final = frozenset(
    """will may mark rose olive grace hope joy faith art bill bob frank jack rich rob sue pat gene dean drew chase hunter mason miles max
    ray reed rusty sandy sunny summer autumn april june august ivy lily daisy violet ruby amber jade pearl crystal ginger holly iris
    heather jasmine melody harmony destiny angel star dawn eve christian king prince major biscuit cookie peanut pepper honey lucky shadow
    smokey patch buddy rocky bear duke penny poppy willow hazel basil sage clay cliff dale forest glen heath lane rain river sky stone
    storm wood woods young white black brown green gray grey long short small little best love dear day knight page cook baker smith
    carpenter mason taylor fisher shepherd bishop pope law price rich wise noble sharp swift strong bush field hill lake brook rivers
    banks church hall house post bell ball bond case chance cross curry diamond fox wolf lamb bird crane finch martin robin jay drake nick
    don guy harry jimmy john johns josh kitty mike nelly norm peter polly randy skip stew sonny tab tad terry tiger tom tony trudy van vic
    wade warren wren do an so in on my she he can le la el al de man mae kay kit kim lee see song sun moon wang win young van ann""".split()
)
"""Names that are also words. They are not replaced in lower case."""


def is_also_a_word(name: str) -> bool:
    """Return whether a name is also a word, so that it means a person only in some places."""
    return name.casefold() in _ALSO_WORDS


@cache
def _places() -> frozenset[str]:
    """Return names of cities, countries and rivers, in lower case."""
    return frozenset(place[0].casefold() for place in load_wordnet().places)


@cache
def _common_words() -> frozenset[str]:
    """Return nouns, verbs and adjectives."""
    facts = load_wordnet()
    kinds = [word for members in facts.kinds.values() for kind, names in members.items() for word in (kind, *names)]
    pairs = [*facts.parts, *facts.members, *facts.substances, *facts.opposites, *facts.synonyms, *facts.pertaining]
    groups = [facts.ways, facts.similar, facts.fields]
    words = [
        *kinds,
        *(word for pair in pairs for word in pair),
        *(word for group in groups for key, many in group.items() for word in (key, *many)),
    ]
    return frozenset(word for word in words if word.islower()) - _ALSO_WORDS


def find_names(text: str, lower: Container[str] = ()) -> Iterator[str]:
    """Yield the names of people in a text, as they are written there, each with all its parts.

    `lower`: words that the log mostly has in lower case. They are names only where the context leaves no doubt.
    """
    for number, pattern in enumerate(_STRONG):
        for match in pattern.finditer(text):
            name = _first_words(match["name"])
            if name and (number == 0 or name.casefold() not in _places()):
                yield name
    for pattern in _WEAK:
        for match in pattern.finditer(text):
            name = _first_words(match["name"])
            first = name.partition(" ")[0].casefold()
            known = name.casefold() in _places() or first in _common_words() or (first in lower and first not in _ALSO_WORDS)
            if name and not known:
                yield name
    for pattern in (_CHINESE, _JAPANESE):
        yield from (match["name"] for match in pattern.finditer(text))


def _first_words(name: str) -> str:
    """Return the name up to the first word that is none, without a title and without 's."""
    words = name.split(" ")
    while words and _TITLE.fullmatch(words[0]):
        words.pop(0)
    kept: list[str] = []
    for word in words:
        own = re.sub(r"['’]s$", "", word)
        if own.partition("'")[0].partition("’")[0].casefold() in _NEVER or len(own) < 2:
            break
        kept.append(own)
        if own != word:
            break
    while kept and not kept[-1][0].isupper():
        kept.pop()
    return " ".join(kept) if kept and kept[0][0].isupper() else ""
